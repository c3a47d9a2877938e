// Predicts the duration of a step from its number of tokens, by interpolating between measured running
// means.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace octavo {

class StepTimes {
 public:
  static constexpr int kTokensMost = 128;

  // Adds the duration of a step that computed no prompt tokens. `tokens` counts output tokens and draft
  // tokens.
  void note(int tokens, std::int64_t ns);
  bool knows(int tokens) const {
    return tokens > 0 && tokens <= kTokensMost && ns_[static_cast<std::size_t>(tokens)] > 0;
  }
  // Returns the expected duration of a step. Outside of the measured range, returns the nearest measured
  // duration. Returns 0 if nothing was measured.
  std::int64_t of(int tokens) const;

 private:
  std::array<std::int64_t, kTokensMost + 1> ns_ = {};
};

}  // namespace octavo
