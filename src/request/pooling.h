// Texts that are read, not continued: what is asked, and how the model's numbers become what a client sees.
#pragma once

#include <cstdint>
#include <span>

namespace octavo {

// What an engine does with prompts: it continues them, makes a vector of each or of each of its tokens, or
// scores each label.
enum class Task : std::uint8_t { generate, embed, classify, token_embed };

enum class ScoreActivation : std::uint8_t { none, sigmoid, softmax };

// Scales the vector to length 1; one of zeros stays.
void normalise(std::span<float> vector);

void activate(ScoreActivation activation, std::span<float> scores);

}  // namespace octavo
