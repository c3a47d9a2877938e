// Pooling tasks, and the functions applied to a head's output.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace octavo {

// Type of result for a prompt: output tokens, a vector, or label scores. embed and classify return one result
// per text; token_embed and token_classify return one per token.
enum class Task : std::uint8_t { generate, embed, classify, token_embed, token_classify };

constexpr bool is_of_tokens(Task task) { return task == Task::token_embed || task == Task::token_classify; }

// Returns the task with this name in vLLM, or nullopt if vLLM has no such task.
std::optional<Task> task_named(std::string_view name);
inline constexpr std::string_view kTaskNames = R"("embed", "token_embed", "classify" or "token_classify")";

enum class ScoreActivation : std::uint8_t { none, sigmoid, softmax, relu };

// Scales the vector to length 1; a vector of zeros is unchanged.
void normalise(std::span<float> vector);

void activate(ScoreActivation activation, std::span<float> scores);

}  // namespace octavo
