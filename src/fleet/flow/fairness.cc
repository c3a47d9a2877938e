#include "fleet/flow/fairness.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <string>

namespace octavo::fleet {
namespace {

class GlobalStrict : public Fairness {
 public:
  std::size_t pick(std::span<const FlowHead> heads, std::int64_t) override {
    return static_cast<std::size_t>(std::ranges::min_element(heads, {}, &FlowHead::rank) - heads.begin());
  }
};

class RoundRobin : public Fairness {
 public:
  std::size_t pick(std::span<const FlowHead> heads, std::int64_t) override {
    const auto next = std::ranges::upper_bound(heads, std::string_view(last_), {}, &FlowHead::flow);
    const auto picked = next != heads.end() ? next : heads.begin();
    last_ = picked->flow;
    return static_cast<std::size_t>(picked - heads.begin());
  }

 private:
  std::string last_;
};

template <class Made>
class Plain : public FairnessPolicy {
 public:
  std::unique_ptr<Fairness> make() override { return std::make_unique<Made>(); }
};

template <class Made>
std::shared_ptr<FairnessPolicy> make_plain(Parameters&) {
  return std::make_shared<Plain<Made>>();
}

constexpr FairnessRow kFairness[] = {
    {"global-strict-fairness-policy", make_plain<GlobalStrict>},
    {"program-aware-fairness", make_program_aware},
    {"round-robin-fairness-policy", make_plain<RoundRobin>},
};

}  // namespace

const FairnessRow* find_fairness(std::string_view type) {
  const auto found = std::ranges::find(kFairness, type, &FairnessRow::type);
  return found != std::end(kFairness) ? &*found : nullptr;
}

std::shared_ptr<FairnessPolicy> make_fairness(std::string_view type) {
  const FairnessRow* row = find_fairness(type);
  if (!row) return nullptr;
  const boost::json::object none;
  Parameters parameters(none, "");
  return row->make(parameters);
}

std::shared_ptr<FairnessPolicy> default_fairness() { return std::make_shared<Plain<GlobalStrict>>(); }

}  // namespace octavo::fleet
