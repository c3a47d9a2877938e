// Fairness policies, as in llm-d: each chooses which flow of a priority band dispatches its first request
// next. FlowControl calls them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "fleet/decide/parameters.h"

namespace octavo::fleet {

struct FlowHead {
  std::string_view flow;
  // ordering key (see Ordering::key), then arrival number, of the flow's first request
  std::pair<std::int64_t, std::uint64_t> rank;
  std::int64_t arrived_us = 0;
};

class Fairness {
 public:
  virtual ~Fairness() = default;
  // Returns the index in `heads` of the flow whose first request is dispatched next. `heads` is not empty,
  // is sorted by flow name, and has one entry for each flow.
  virtual std::size_t pick(std::span<const FlowHead> heads, std::int64_t now_us) = 0;
};

// A configured policy. Several bands may share one object, and each band calls make() for its own state.
class FairnessPolicy {
 public:
  virtual ~FairnessPolicy() = default;
  virtual std::unique_ptr<Fairness> make() = 0;
  // Called when a dispatched request ends, with its numbers of prompt and output tokens.
  virtual void ended(std::string_view /*flow*/, std::int64_t /*input*/, std::int64_t /*output*/,
                     std::int64_t /*now_us*/) {}
};

struct FairnessRow {
  std::string_view type;
  std::shared_ptr<FairnessPolicy> (*make)(Parameters& parameters);
};

const FairnessRow* find_fairness(std::string_view type);  // null: unknown type
// Returns null if the type is unknown, or if it has parameters without a default.
std::shared_ptr<FairnessPolicy> make_fairness(std::string_view type);
// picks the flow whose first request has the lowest FlowHead::rank
std::shared_ptr<FairnessPolicy> default_fairness();

std::shared_ptr<FairnessPolicy> make_program_aware(Parameters& parameters);
// program-aware-fairness with the strategy turn-priority
std::shared_ptr<FairnessPolicy> make_turn_priority(Parameters& parameters);

}  // namespace octavo::fleet
