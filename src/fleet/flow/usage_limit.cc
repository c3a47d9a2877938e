#include "fleet/flow/usage_limit.h"

#include <algorithm>
#include <cmath>

namespace octavo::fleet {
namespace {

// The same for all.
class Static : public UsageLimit {
 public:
  explicit Static(double threshold) : threshold_(threshold) {}
  void limit(double, std::span<double> ceilings) override { std::ranges::fill(ceilings, threshold_); }

 private:
  const double threshold_;
};

// llm-d's: of n bands the i-th has the ceiling 1 - i s / (n - 1) at saturation s. A band beyond its ceiling
// goes in one turn of round(s / (1 - s)). All count the same turns, so that none goes while a higher one may
// not.
class SoftReflective : public UsageLimit {
 public:
  void limit(double saturation, std::span<double> ceilings) override {
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

std::shared_ptr<UsageLimit> make_static(Parameters& parameters) {
  double threshold = 1;
  parameters.read("threshold", threshold, 0, 1e6);
  return static_usage_limit(threshold);
}

std::shared_ptr<UsageLimit> make_soft_reflective(Parameters&) { return std::make_shared<SoftReflective>(); }

constexpr UsageLimitRow kLimits[] = {
    {"static-usage-limit-policy", make_static},
    {"soft-reflective-ceiling-policy", make_soft_reflective},
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
