// Finds stop strings in a text that arrives in pieces, before any part of them is sent.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

inline constexpr std::size_t kStopStringsMax = 32;
inline constexpr std::size_t kStopStringBytesMax = 1024;

// Finds the first complete stop string. If several end at the same byte, the longest one counts. If several
// stop strings are equal, the first one in the list counts. Holds back only the end of the text that
// may begin a stop string. Runs Knuth-Morris-Pratt for each stop string, in linear time.
class StopSplitter {
 public:
  struct Step {
    std::string text;
    // index of the stop string that was found; nullopt: none was found yet
    std::optional<std::size_t> stop;
  };

  // Returns invalid_argument on "stop" if a string is empty or too long, or if there are too many.
  static Result<StopSplitter> create(std::vector<std::string> stops, bool include_stop_string);

  // Ignores all text after a stop string.
  Step push(std::string_view piece);

  // Call it after the last piece. Returns the text that was held back.
  std::string finish();

 private:
  struct Pattern {
    std::string text;
    // border[n]: length of the longest proper prefix of text[0, n) that is also a suffix of it
    std::vector<std::size_t> border;
    // The last `matched` bytes of the text equal the start of the stop string.
    std::size_t matched = 0;
  };

  explicit StopSplitter(bool include_stop_string) : include_stop_string_(include_stop_string) {}

  std::optional<std::size_t> advance(char byte);

  std::vector<Pattern> patterns_;
  bool include_stop_string_;
  bool stopped_ = false;
  std::string held_;
};

}  // namespace octavo
