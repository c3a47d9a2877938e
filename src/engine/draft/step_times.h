// What steps of so many tokens take: a running mean for each number of tokens, and what lies between in proportion.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace octavo {

class StepTimes {
 public:
  static constexpr int kTokensMost = 128;  // of larger steps nothing is kept

  // A step of answers' tokens and draft tokens, and of nothing else.
  void note(int tokens, std::int64_t ns);
  bool knows(int tokens) const {
    return tokens > 0 && tokens <= kTokensMost && ns_[static_cast<std::size_t>(tokens)] > 0;
  }
  // Beyond what is known: as long as the nearest. 0: nothing is known.
  std::int64_t of(int tokens) const;

 private:
  std::array<std::int64_t, kTokensMost + 1> ns_ = {};
};

}  // namespace octavo
