#include "model/blocks/expert_exchange.h"

#include <algorithm>
#include <cstring>

#include "model/blocks/expert_spread.h"

namespace octavo {
namespace {

constexpr int kLeaveMs = 2'000;

// The first message of a rank in each step.
struct StepHead {
  std::int32_t tokens = 0;
  std::int32_t leaves = 0;
};

std::span<std::byte> bytes_of(const View& rows) {
  return {static_cast<std::byte*>(rows.data), static_cast<std::size_t>(rows.bytes())};
}

}  // namespace

ExpertExchange::ExpertExchange(ProcessGroup& group, const Shard& shard, DType activation)
    : group_(group),
      ranks_of_engine_(static_cast<std::size_t>(shard.size)),
      engines_(static_cast<std::size_t>(shard.engines)),
      engine_(static_cast<std::size_t>(shard.engine)),
      rank_(shard.expert_rank()),
      activation_(activation),
      first_token_(engines_ + 1),
      first_rows_(engines_) {}

Result<> ExpertExchange::begin(std::int64_t n) {
  if (left_)
    return failure(ErrorCode::unavailable,
                   "another engine that shares the experts has stopped: restart all engines");
  const StepHead own{.tokens = static_cast<std::int32_t>(n)};
  std::vector<StepHead> all(engines_ * ranks_of_engine_);
  group_.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  TRY_VOID(group_.status());
  most_tokens_ = 0;
  for (std::size_t g = 0; g < engines_; ++g) {
    const std::int64_t tokens = all[g * ranks_of_engine_].tokens;
    first_token_[g + 1] = first_token_[g] + tokens;
    most_tokens_ = std::max(most_tokens_, tokens);
  }
  left_ = std::ranges::any_of(all, [](const StepHead& head) { return head.leaves != 0; });
  if (!left_) return {};
  std::ranges::fill(first_token_, 0);  // No engine has tokens, so no rank computes anything in this step.
  if (n == 0) return {};
  return failure(ErrorCode::unavailable,
                 "another engine that shares the experts has stopped: restart all engines");
}

void ExpertExchange::leave() {
  if (left_ || group_.failure()) return;
  left_ = true;
  group_.set_timeout_ms(kLeaveMs);
  const StepHead own{.leaves = 1};
  std::vector<StepHead> all(engines_ * ranks_of_engine_);
  group_.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
}

// Makes `all` complete on all ranks. The first rank of engine g sends the bytes [offset(g), offset(g + 1)) of
// `all`.
template <class Offset>
void ExpertExchange::gather_of_engines(std::span<std::byte> all, const Offset& offset) {
  offsets_.clear();
  for (std::size_t g = 0; g < engines_; ++g)
    for (std::size_t r = 0; r < ranks_of_engine_; ++r) offsets_.push_back(offset(r == 0 ? g : g + 1));
  offsets_.push_back(offset(engines_));
  group_.gather(all, offsets_, ProcessGroup::kEveryRank);
}

std::size_t ExpertExchange::first_route(std::size_t engine) const {
  return engine * heads_ + static_cast<std::size_t>(first_token_[engine]) * chosen_;
}

std::size_t ExpertExchange::engine_of(std::int32_t token) const {
  std::size_t engine = 0;
  while (token >= first_token_[engine + 1]) ++engine;
  return engine;
}

bool ExpertExchange::share(const View& x, const RouteArgs& own, std::int64_t chosen, const View& everyone) {
  chosen_ = static_cast<std::size_t>(chosen);
  heads_ = static_cast<std::size_t>(own.starts.size(0));
  const auto pairs = static_cast<std::size_t>(x.size(0)) * chosen_;
  routes_.resize(first_route(engines_));
  std::int32_t* const mine = routes_.data() + first_route(engine_);
  std::copy_n(own.starts.as<std::int32_t>(), heads_, mine);
  std::copy_n(own.tokens.as<std::int32_t>(), pairs, mine + heads_);
  gather_of_engines(std::as_writable_bytes(std::span(routes_)),
                    [&](std::size_t g) { return first_route(g) * sizeof(std::int32_t); });
  const auto row_bytes = static_cast<std::size_t>(everyone.size(1)) * size_of(everyone.dtype);
  const auto offset = [&](std::size_t g) { return static_cast<std::size_t>(first_token_[g]) * row_bytes; };
  const std::span<std::byte> rows = bytes_of(everyone);
  if (x.size(0) > 0) std::memcpy(rows.data() + offset(engine_), x.data, static_cast<std::size_t>(x.bytes()));
  gather_of_engines(rows, offset);
  if (group_.failure()) return false;

  starts_.assign(heads_, 0);
  pair_tokens_.resize(static_cast<std::size_t>(tokens()) * chosen_);
  own_pairs_.resize(pairs);
  std::int32_t pair = 0;
  for (std::size_t e = 0; e + 1 < heads_; ++e) {
    for (std::size_t g = 0; g < engines_; ++g) {
      const std::int32_t* route = routes_.data() + first_route(g);
      for (std::int32_t p = route[e]; p < route[e + 1]; ++p, ++pair) {
        pair_tokens_[static_cast<std::size_t>(pair)] =
            route[heads_ + static_cast<std::size_t>(p)] + static_cast<std::int32_t>(first_token_[g]);
        if (g == engine_) own_pairs_[static_cast<std::size_t>(p)] = pair;
      }
    }
    starts_[e + 1] = pair;
  }
  return true;
}

RouteArgs ExpertExchange::routed() const {
  return {.logits = {},
          .rule = {},
          .weights = {},
          .pair_rows = {},
          .tokens = View::of(std::span(pair_tokens_)),
          .starts = View::of(std::span(starts_))};
}

void ExpertExchange::divide(const ExpertSpread& spread, const Arranged& arranged) {
  row_tokens_ = {arranged.tokens.as<std::int32_t>(), pair_tokens_.size()};
  row_of_engine_.resize(row_tokens_.size());
  std::vector<std::int64_t> rows(engines_);  // rows counted so far for each engine
  for (auto& of_engine : first_rows_) of_engine.assign(1, 0);
  for (int rank = 0; std::cmp_less(rank, engines_ * ranks_of_engine_); ++rank) {
    for (std::int64_t row = spread.first_row(rank); row < spread.first_row(rank + 1); ++row) {
      const auto r = static_cast<std::size_t>(row);
      row_of_engine_[r] = static_cast<std::int32_t>(rows[engine_of(row_tokens_[r])]++);
    }
    for (std::size_t g = 0; g < engines_; ++g) first_rows_[g].push_back(rows[g]);
  }
  first_row_ = spread.first_row(rank_);

  auto* pair_rows = arranged.pair_rows.as<std::int32_t>();
  const auto* order = arranged.order.as<std::int32_t>();
  for (std::int64_t i = 0; i < arranged.pair_rows.elements(); ++i) {
    const std::int32_t pair = own_pairs_[static_cast<std::size_t>(pair_rows[i])];
    pair_rows[i] = row_of_engine_[static_cast<std::size_t>(order[pair])];
  }
}

void ExpertExchange::give_back(const View& rows, const View& sent, const View& own) {
  const auto row_bytes = static_cast<std::size_t>(rows.size(1)) * size_of(rows.dtype);
  const auto* from = static_cast<const std::byte*>(rows.data);
  for (std::size_t g = 0; g < engines_; ++g) {
    const int to = static_cast<int>(g * ranks_of_engine_);
    const View& buffer = to == rank_ ? own : sent;
    auto* out = static_cast<std::byte*>(buffer.data);
    for (std::int64_t row = 0; row < rows.size(0); ++row) {
      const auto r = static_cast<std::size_t>(first_row_ + row);
      if (engine_of(row_tokens_[r]) == g)
        std::memcpy(out + static_cast<std::size_t>(row_of_engine_[r]) * row_bytes,
                    from + static_cast<std::size_t>(row) * row_bytes, row_bytes);
    }
    offsets_.clear();
    for (const std::int64_t first : first_rows_[g])
      offsets_.push_back(static_cast<std::size_t>(first) * row_bytes);
    group_.gather(bytes_of(buffer).first(offsets_.back()), offsets_, to);
  }
}

}  // namespace octavo
