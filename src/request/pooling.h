// Pooling: tasks, and the activation of the model's numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace octavo {

// Result of an engine for a prompt: its continuation, or a vector or scores of labels, for the text or for
// each token.
enum class Task : std::uint8_t { generate, embed, classify, token_embed, token_classify };

constexpr bool is_of_tokens(Task task) { return task == Task::token_embed || task == Task::token_classify; }

// vLLM's names of pooling tasks. nullopt: no such task.
std::optional<Task> task_named(std::string_view name);
inline constexpr std::string_view kTaskNames = R"("embed", "token_embed", "classify" or "token_classify")";

enum class ScoreActivation : std::uint8_t { none, sigmoid, softmax, relu };

// Scales the vector to length 1; zeros stay.
void normalise(std::span<float> vector);

void activate(ScoreActivation activation, std::span<float> scores);

}  // namespace octavo
