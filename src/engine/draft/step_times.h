// Duration of a step by its number of tokens: running means, interpolated in between.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace octavo {

class StepTimes {
 public:
  static constexpr int kTokensMost = 128;  // larger steps are ignored

  // Adds a step of output tokens and draft tokens, without prompt tokens.
  void note(int tokens, std::int64_t ns);
  bool knows(int tokens) const {
    return tokens > 0 && tokens <= kTokensMost && ns_[static_cast<std::size_t>(tokens)] > 0;
  }
  // Outside the known range: the nearest value. 0 if no step is known.
  std::int64_t of(int tokens) const;

 private:
  std::array<std::int64_t, kTokensMost + 1> ns_ = {};
};

}  // namespace octavo
