#include "fleet/flow/usage_limit.h"

#include <algorithm>
#include <cmath>

namespace octavo::fleet {
namespace {

class Static : public UsageLimit {
 public:
  explicit Static(double threshold) : threshold_(threshold) {}
  void limit(double, std::span<const int>, std::span<double> ceilings) override {
    std::ranges::fill(ceilings, threshold_);
  }

 private:
  const double threshold_;
};

// llm-d's soft-reflective policy. With n bands and a saturation of s, band i (0: highest priority) has the
// ceiling 1 - i * s / (n - 1). While s is at or above this ceiling, only every round(s / (1 - s))-th call
// dispatches the band's requests. All bands count the same calls, so a call that blocks a band also blocks
// all lower bands.
class SoftReflective : public UsageLimit {
 public:
  void limit(double saturation, std::span<const int>, std::span<double> ceilings) override {
    if (ceilings.size() < 2) return;
    bool open = false;
    if (saturation >= 1 - saturation && saturation < 1) {
      const double period = std::max(1.0, std::round(saturation / (1 - saturation + 1e-9)));
      open = std::fmod(static_cast<double>(++turns_), period) == 0;
    }
    for (std::size_t i = 1; i < ceilings.size(); ++i) {
      const double reflected =
          1 - static_cast<double>(i) * saturation / static_cast<double>(ceilings.size() - 1);
      ceilings[i] = saturation < reflected || (saturation < 1 && open) ? 1 : 0;
    }
  }

 private:
  std::uint64_t turns_ = 0;
};

// llm-d's priority-holdback policy. The highest band has the ceiling maxCeiling, and the lowest band
// minCeiling. The other ceilings are interpolated by the band's rank or by its priority.
class PriorityHoldback : public UsageLimit {
 public:
  double least = -1, greatest = 1;
  bool by_value = false;

  void limit(double, std::span<const int> priorities, std::span<double> ceilings) override {
    if (ceilings.empty()) return;
    const double bands = static_cast<double>(ceilings.size()) - 1;
    const double range = static_cast<double>(priorities.front()) - priorities.back();
    for (std::size_t i = 0; i < ceilings.size(); ++i) {
      double down = bands > 0 ? static_cast<double>(i) / bands : 0;
      if (by_value && range > 0) down = (static_cast<double>(priorities.front()) - priorities[i]) / range;
      ceilings[i] = greatest - down * (greatest - least);
    }
  }
};

std::shared_ptr<UsageLimit> make_priority_holdback(Parameters& parameters) {
  auto policy = std::make_shared<PriorityHoldback>();
  std::string shape = "linear", domain = "rank";
  parameters.read("shape", shape);
  parameters.read("domain", domain);
  parameters.read("minCeiling", policy->least, 0, 1);
  parameters.read("maxCeiling", policy->greatest, 0, 1);
  if (shape != "linear") parameters.fail("shape", "must be \"linear\"");
  if (domain != "rank" && domain != "value") parameters.fail("domain", "must be \"rank\" or \"value\"");
  if (policy->least < 0) parameters.fail("minCeiling", "must be given");
  if (policy->least >= policy->greatest) parameters.fail("minCeiling", "must be less than maxCeiling");
  policy->by_value = domain == "value";
  return policy;
}

std::shared_ptr<UsageLimit> make_static(Parameters& parameters) {
  double threshold = 1;
  parameters.read("threshold", threshold, 0, 1e6);
  return static_usage_limit(threshold);
}

std::shared_ptr<UsageLimit> make_soft_reflective(Parameters&) { return std::make_shared<SoftReflective>(); }

constexpr UsageLimitRow kLimits[] = {
    {"priority-holdback-policy", make_priority_holdback, true},
    {"static-usage-limit-policy", make_static},
    {"soft-reflective-ceiling-policy", make_soft_reflective, true},
};

}  // namespace

const UsageLimitRow* find_usage_limit(std::string_view type) {
  const auto found = std::ranges::find(kLimits, type, &UsageLimitRow::type);
  return found != std::end(kLimits) ? &*found : nullptr;
}

std::shared_ptr<UsageLimit> static_usage_limit(double threshold) {
  return std::make_shared<Static>(threshold);
}

}  // namespace octavo::fleet
