// Pooling tasks of embedding and classification models, and the functions that are applied to the output of
// the pooling head.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace octavo {

// Type of the result for a prompt: output tokens, a vector, or scores of labels. embed and classify return
// one result per text; token_embed and token_classify return one result per token.
enum class Task : std::uint8_t { generate, embed, classify, token_embed, token_classify };

constexpr bool is_of_tokens(Task task) { return task == Task::token_embed || task == Task::token_classify; }

// Returns the task with this name in vLLM's API, or nullopt if no task has the name.
std::optional<Task> task_named(std::string_view name);
// Returns the name of a pooling task; "" for Task::generate.
std::string_view task_name(Task task);
// Returns the quoted names of the tasks for which the function returns true, such as "embed" or
// "token_embed".
std::string task_names(const std::function<bool(Task)>& is_listed);
inline constexpr std::string_view kTaskNames = R"("embed", "token_embed", "classify" or "token_classify")";

enum class ScoreActivation : std::uint8_t { none, sigmoid, softmax, relu };

// Scales the vector to length 1. Does not change a vector of zeros.
void normalise(std::span<float> vector);

void activate(ScoreActivation activation, std::span<float> scores);

}  // namespace octavo
