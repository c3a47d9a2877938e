// kv-cost-scorer: prefers endpoints with a low cost. The cost is that of NVIDIA Dynamo, in blocks of
// tokens:
//
//   prefill = max(0, prompt + prefill in flight - (device hits + 0.75 host hits + 0.25 disk hits))
//   cost    = prefillLoadScale * prefill + blocks in flight, including this request
//
// with two additions. First, computing a block delays all requests at the endpoint (delayWeight 0 disables
// this). Second, a slow endpoint needs more time for all its work, including the answer (see pace.h):
//
//   slowness * (cost + delayWeight * requests in flight * max(0, prompt - hits) + answer)
//
// where `answer` is the number of prompt blocks that the median endpoint computes in the time of a mean
// answer.
//
// Blocks that several requests share count once, so that requests with the same prefix go to the same
// endpoint. Dynamo counts distinct blocks. Here, a request counts the blocks that the endpoint had not cached
// when the request was sent. The lowest cost has the score 1, the highest cost 0. With softmax-picker, the
// choice is the same as Dynamo's choice by temperature.
#include <algorithm>
#include <cmath>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/plugins.h"

namespace octavo::fleet {
namespace {

class KvCostScorer : public Scorer {
 public:
  std::size_t producer = 0;  // index in Cycle::overlaps
  double overlap_credit = 1;
  double host_weight = 0.75;
  double disk_weight = 0.25;
  double prefill_scale = 1;
  double delay_weight = 0;

  void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) override {
    const Overlap& overlap = cycle.overlaps[producer];
    for (std::size_t i = 0; i < candidates.size(); ++i) scores[i] = cost(cycle, overlap, *candidates[i]);
    const auto [least, most] = std::ranges::minmax(scores);
    for (double& score : scores) score = most > least ? (most - score) / (most - least) : 1;
  }

 private:
  double cost(const Cycle& cycle, const Overlap& overlap, const Member& member) const {
    const auto blocks = [&](std::int64_t tokens) {
      return std::ceil(static_cast<double>(tokens) / overlap.block_size);
    };
    const Load load = cycle.load(member);
    const Hits hits = overlap.of(member.id);
    const double prompt = blocks(static_cast<std::int64_t>(cycle.request.tokens.size()));
    const double credit = overlap_credit * hits.device + host_weight * hits.host + disk_weight * hits.disk;
    const double prefill = std::max(0.0, prompt + blocks(load.prefill_tokens) - credit);
    const double own = std::max(0.0, prompt - hits.blocks());
    const double delay = delay_weight * load.requests * std::max(0.0, prompt - credit);
    const double answer = member.endpoint->role == Role::prefill
                              ? 0
                              : cycle.pace.answer_in_prompt_tokens() / overlap.block_size;
    return cycle.pace.slowness(member.id) *
           (prefill_scale * prefill + blocks(load.own_tokens) + own + delay + answer);
  }
};

}  // namespace

std::unique_ptr<Plugin> make_kv_cost_scorer(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<KvCostScorer>();
  std::string producer = "precise-prefix-cache-producer";
  parameters.read("prefixMatchInfoProducerName", producer);
  parameters.read("overlapScoreCredit", plugin->overlap_credit, 0, 100);
  parameters.read("hostCacheHitWeight", plugin->host_weight, 0, 1);
  parameters.read("diskCacheHitWeight", plugin->disk_weight, 0, 1);
  parameters.read("prefillLoadScale", plugin->prefill_scale, 0, 1000);
  parameters.read("delayWeight", plugin->delay_weight, 0, 1000);
  plugin->producer = plugins.producer(producer, parameters, "prefixMatchInfoProducerName");
  return plugin;
}

}  // namespace octavo::fleet
