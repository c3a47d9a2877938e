// Texts that are read, not continued: what is asked, and how the model's numbers become what a client sees.
#pragma once

#include <cstdint>
#include <vector>

namespace octavo {

// What an engine does with prompts: it continues them, makes a vector of each, or scores each label.
enum class Task : std::uint8_t { generate, embed, classify };

enum class ScoreActivation : std::uint8_t { none, sigmoid, softmax };

// Scales the vector to length 1; one of zeros stays.
void normalise(std::vector<float>& vector);

void activate(ScoreActivation activation, std::vector<float>& scores);

}  // namespace octavo
