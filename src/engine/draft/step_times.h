// Duration of a step as a function of its number of tokens: running means, with interpolation between them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace octavo {

class StepTimes {
 public:
  static constexpr int kTokensMost = 128;  // maximum number of tokens of a measured step

  // Adds the duration of a step with output tokens and draft tokens, but without prompt tokens.
  void note(int tokens, std::int64_t ns);
  bool knows(int tokens) const {
    return tokens > 0 && tokens <= kTokensMost && ns_[static_cast<std::size_t>(tokens)] > 0;
  }
  // Returns the duration of a step with this number of tokens. Outside of the measured range, it is the
  // nearest measured duration; 0 if nothing has been measured.
  std::int64_t of(int tokens) const;

 private:
  std::array<std::int64_t, kTokensMost + 1> ns_ = {};
};

}  // namespace octavo
