#include "engine/execute/expert_balancer.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/log.h"

namespace octavo {

Result<std::unique_ptr<ExpertBalancer>> ExpertBalancer::create(const ExpertBalancing& options,
                                                               const Model& model, ProcessGroup& group) {
  std::unique_ptr<ExpertBalancer> balancer(new ExpertBalancer(options, group));
  std::int64_t staged = 0;
  for (const Layer& layer : model.network.layers)
    for (const Block* block : layer.blocks())
      if (ExpertSpread* spread = block->experts_over_ranks()) {
        balancer->layers_.push_back(spread);
        staged = std::max(staged, spread->slot_bytes() * std::ssize(spread->own()));
      }
  const std::size_t layers = balancer->layers_.size();
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<std::uint64_t> own, all(layers * ranks);
  for (const ExpertSpread* spread : balancer->layers_) own.push_back(spread->format());
  group.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
  TRY_VOID(group.status());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] == 0 || all[i] != all[i % layers])
      return field_failure(
          "enable_eplb", ErrorCode::unsupported,
          "the experts of one layer are stored in several formats (layer {} of those with experts)",
          i % layers + 1);
  TRY(balancer->staging_, allocate_host(static_cast<std::size_t>(staged)));
  return balancer;
}

void ExpertBalancer::before_step() {
  if (layers_.empty()) return;
  const auto forget = [&] {
    for (ExpertSpread* layer : layers_) std::ranges::fill(layer->loads(), 0);
  };
  if (steps_ >= options_.step_interval && moving_ == next_.size()) {
    plan();
    forget();
    steps_ = 0;
  } else if (steps_ == options_.step_interval - options_.window_size) {
    // A plan uses only the token counts of the last window_size steps, so earlier counts are dropped.
    forget();
  }
  ++steps_;
  while (moving_ < next_.size()) {
    move(moving_++);
    if (options_.use_async) break;
  }
}

// Computes the plan on rank 0 for all ranks, because rounding may differ between ranks. A layer does not
// change if the plan does not reduce the load of the busiest rank.
void ExpertBalancer::plan() {
  next_.clear();
  double now = 0, then = 0;
  std::int64_t moves = 0;
  for (ExpertSpread* layer : layers_) {
    ExpertPlacement next = layer->placement();
    if (group_.rank() == 0) {
      const std::vector<double> loads(layer->loads().begin(), layer->loads().end());
      ExpertPlacement better = balanced_placement(loads, next, group_.size());
      const std::vector<double> before = rank_loads(loads, next, group_.size());
      const std::vector<double> after = rank_loads(loads, better, group_.size());
      const bool helps = *std::ranges::max_element(after) < *std::ranges::max_element(before);
      now += balancedness(before);
      then += balancedness(helps ? after : before);
      if (helps) {
        for (std::size_t i = 0; i < next.size(); ++i) moves += next[i] != better[i];
        next = std::move(better);
      }
    }
    group_.broadcast(std::as_writable_bytes(std::span(next)));
    next_.push_back(std::move(next));
  }
  moving_ = group_.failure() ? next_.size() : 0;
  if (group_.rank() != 0) return;
  const auto layers = static_cast<double>(layers_.size());
  if (moves > 0 || options_.log_balancedness)
    log_info(
        "EPLB: balancedness was {:.2f} over {} steps; {:.2f} is expected after {} of {} slots get another "
        "expert",
        now / layers, std::min(options_.window_size, options_.step_interval), then / layers, moves,
        layers_.size() * layers_[0]->placement().size());
}

void ExpertBalancer::move(std::size_t layer) {
  if (next_[layer] == layers_[layer]->placement()) return;
  layers_[layer]->move(next_[layer], group_, {static_cast<std::byte*>(staging_.data()), staging_.bytes()});
}

}  // namespace octavo
