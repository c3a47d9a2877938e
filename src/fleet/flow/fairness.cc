#include "fleet/flow/fairness.h"

#include <algorithm>
#include <string>

namespace octavo::fleet {
namespace {

// The best head of all, whoever it is of.
class GlobalStrict : public Fairness {
 public:
  std::size_t pick(std::span<const FlowHead> heads) override {
    return static_cast<std::size_t>(std::ranges::min_element(heads, {}, &FlowHead::place) - heads.begin());
  }
};

// One of each flow in turn.
class RoundRobin : public Fairness {
 public:
  std::size_t pick(std::span<const FlowHead> heads) override {
    const auto next = std::ranges::upper_bound(heads, std::string_view(last_), {}, &FlowHead::flow);
    const auto picked = next != heads.end() ? next : heads.begin();
    last_ = picked->flow;
    return static_cast<std::size_t>(picked - heads.begin());
  }

 private:
  std::string last_;
};

template <class Made>
std::unique_ptr<Fairness> make() {
  return std::make_unique<Made>();
}

constexpr FairnessRow kFairness[] = {
    {"global-strict-fairness-policy", make<GlobalStrict>},
    {"round-robin-fairness-policy", make<RoundRobin>},
};

}  // namespace

const FairnessRow* find_fairness(std::string_view type) {
  const auto found = std::ranges::find(kFairness, type, &FairnessRow::type);
  return found != std::end(kFairness) ? &*found : nullptr;
}

const FairnessRow& default_fairness() { return kFairness[0]; }

}  // namespace octavo::fleet
