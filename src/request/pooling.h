// Texts that are read, not continued: what is asked, and how the model's numbers become what a client sees.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace octavo {

// What an engine does with prompts: it continues them, makes a vector of each or scores each label, or does
// so of each token.
enum class Task : std::uint8_t { generate, embed, classify, token_embed, token_classify };

constexpr bool is_of_tokens(Task task) { return task == Task::token_embed || task == Task::token_classify; }

// Of models that read texts, by vLLM's names; nothing: it is none of them.
std::optional<Task> task_named(std::string_view name);
inline constexpr std::string_view kTaskNames = R"("embed", "token_embed", "classify" or "token_classify")";

enum class ScoreActivation : std::uint8_t { none, sigmoid, softmax, relu };

// Scales the vector to length 1; one of zeros stays.
void normalise(std::span<float> vector);

void activate(ScoreActivation activation, std::span<float> scores);

}  // namespace octavo
