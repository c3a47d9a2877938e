// Finds stop strings in a text that arrives in pieces. No part of a stop string is returned as text.
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

// Finds the first complete stop string. If several end at the same byte, the longest wins, so that no part of
// it is returned; of equal stop strings, the first in the list wins. The splitter holds back only the longest
// end of the text that could begin a stop string. It uses Knuth-Morris-Pratt for each stop string, in linear
// time.
class StopSplitter {
 public:
  struct Step {
    std::string text;                 // text to send
    std::optional<std::size_t> stop;  // index of the stop string, in the step that finds it
  };

  // Errors: invalid_argument on field "stop" if a string is empty or too long, or if there are too many.
  static Result<StopSplitter> create(std::vector<std::string> stops, bool include_stop_string);

  // Adds the next piece. After a stop string, all further text is ignored.
  Step push(std::string_view piece);

  // Call this after the last piece. Returns the text that was held back.
  std::string finish();

 private:
  struct Pattern {
    std::string text;
    std::vector<std::size_t> border;  // border[n]: length of the longest proper prefix of text[0, n) that is
                                      // also its suffix
    std::size_t matched = 0;          // length of the pattern's prefix that the text ends with
  };

  explicit StopSplitter(bool include_stop_string) : include_stop_string_(include_stop_string) {}

  std::optional<std::size_t> advance(char byte);

  std::vector<Pattern> patterns_;
  bool include_stop_string_;
  bool stopped_ = false;
  std::string held_;
};

}  // namespace octavo
