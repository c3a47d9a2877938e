// Measures the time of plugins, for metrics. Plugins themselves have no clock, so decisions do not depend
// on the time that they take.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::fleet {

struct StepName {
  std::string type, name;
};

class StepTimer {
 public:
  virtual ~StepTimer() = default;
  virtual std::int64_t now_ns() const = 0;
  // `point` is llm-d's name of the extension point, such as "Scorer".
  virtual void took(std::string_view point, const StepName& step, std::int64_t ns) = 0;
};

template <class Work>
void timed(StepTimer* timer, std::string_view point, const StepName& step, Work&& work) {
  if (!timer) return work();
  const std::int64_t begun = timer->now_ns();
  work();
  timer->took(point, step, timer->now_ns() - begun);
}

}  // namespace octavo::fleet
