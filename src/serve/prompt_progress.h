// Tracks how many prompt tokens the engine has computed, for streams that report progress.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "request/request.h"
#include "serve/generation_plan.h"
#include "serve/openai/reply.h"

namespace octavo {

class PromptProgress {
 public:
  explicit PromptProgress(const GenerationPlan& plan);

  // Returns the new progress, or nullopt if nothing has changed.
  std::optional<openai::Progress> take(std::size_t prompt, const Output& output, std::int64_t at_us);

 private:
  struct Prompt {
    int tokens = 0;
    int cached = 0;
    int computed = -1;  // -1: the first step has not begun
  };

  std::vector<Prompt> prompts_;
  std::int64_t began_us_ = 0;
};

}  // namespace octavo
