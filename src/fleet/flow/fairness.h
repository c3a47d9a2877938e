// Which flow of a band has the next turn: a row each.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace octavo::fleet {

// The first request of a flow.
struct FlowHead {
  std::string_view flow;
  std::pair<std::int64_t, std::uint64_t> place;  // its ordering key, then the number of its arrival
};

class Fairness {
 public:
  virtual ~Fairness() = default;
  // heads: at least one, by the names of their flows. Returns the place of one in it, which goes now.
  virtual std::size_t pick(std::span<const FlowHead> heads) = 0;
};

struct FairnessRow {
  std::string_view type;  // llm-d's name
  std::unique_ptr<Fairness> (*make)();
};

const FairnessRow* find_fairness(std::string_view type);  // null: there is none
const FairnessRow& default_fairness();                    // whoever is first of all flows

}  // namespace octavo::fleet
