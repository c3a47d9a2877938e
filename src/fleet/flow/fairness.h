// Policies that choose the next flow of a band; the table has a row for each.
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
  // Returns the index of the flow whose request is dispatched now. heads: at least one, sorted by the names
  // of their flows.
  virtual std::size_t pick(std::span<const FlowHead> heads, std::int64_t now_us) = 0;
};

// A configured policy, for all bands that use it.
class FairnessPolicy {
 public:
  virtual ~FairnessPolicy() = default;
  virtual std::unique_ptr<Fairness> make() = 0;
  // Called when a request of the flow has ended, with its numbers of prompt and output tokens.
  virtual void ended(std::string_view /*flow*/, std::int64_t /*input*/, std::int64_t /*output*/,
                     std::int64_t /*now_us*/) {}
};

struct FairnessRow {
  std::string_view type;  // llm-d's name
  std::shared_ptr<FairnessPolicy> (*make)(Parameters& parameters);
};

const FairnessRow* find_fairness(std::string_view type);  // null: unknown type
// Null: unknown type.
std::shared_ptr<FairnessPolicy> make_fairness(std::string_view type);
std::shared_ptr<FairnessPolicy> default_fairness();  // chooses the first request of all flows in their order

std::shared_ptr<FairnessPolicy> make_program_aware(Parameters& parameters);
std::shared_ptr<FairnessPolicy> make_turn_priority(Parameters& parameters);  // strategy turn-priority

}  // namespace octavo::fleet
