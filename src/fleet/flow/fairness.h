// Policies that pick the next flow of a priority band.
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
  std::pair<std::int64_t, std::uint64_t> place;  // ordering key, then arrival number
  std::int64_t arrived_us = 0;
};

class Fairness {
 public:
  virtual ~Fairness() = default;
  // Returns the index of the flow whose request is dispatched next. heads: one for each flow, sorted by flow
  // name; not empty.
  virtual std::size_t pick(std::span<const FlowHead> heads, std::int64_t now_us) = 0;
};

// A configured policy, which several bands may share.
class FairnessPolicy {
 public:
  virtual ~FairnessPolicy() = default;
  virtual std::unique_ptr<Fairness> make() = 0;
  // Reports the end of a request, with its numbers of prompt and output tokens.
  virtual void ended(std::string_view /*flow*/, std::int64_t /*input*/, std::int64_t /*output*/,
                     std::int64_t /*now_us*/) {}
};

struct FairnessRow {
  std::string_view type;  // llm-d's name
  std::shared_ptr<FairnessPolicy> (*make)(Parameters& parameters);
};

const FairnessRow* find_fairness(std::string_view type);  // null: unknown type
// Returns null for an unknown type.
std::shared_ptr<FairnessPolicy> make_fairness(std::string_view type);
std::shared_ptr<FairnessPolicy> default_fairness();  // picks the first request of all flows

std::shared_ptr<FairnessPolicy> make_program_aware(Parameters& parameters);
// program-aware-fairness with strategy turn-priority
std::shared_ptr<FairnessPolicy> make_turn_priority(Parameters& parameters);

}  // namespace octavo::fleet
