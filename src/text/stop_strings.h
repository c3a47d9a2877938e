// Finds stop strings in a text that arrives in pieces, and never lets a part of one out.
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

// The first stop string to be complete wins; of several that end at the same byte, the longest (so that no
// part of any of them gets out), and of equal ones the first in the list. Held back is only the longest end
// of the text that could still begin a stop string. Knuth-Morris-Pratt for each stop: time linear in the text
// for each.
class StopSplitter {
 public:
  struct Step {
    std::string text;                 // text to send
    std::optional<std::size_t> stop;  // set once, when a stop string is found: its index
  };

  // Errors: invalid_argument on field "stop": one empty, one too long, or too many.
  static Result<StopSplitter> create(std::vector<std::string> stops, bool include_stop_string);

  // Takes the next piece. After a stop was found the rest of the text is dropped.
  Step push(std::string_view piece);

  // No more text follows, or none that continues this one: returns the text that was held back.
  std::string finish();

 private:
  struct Pattern {
    std::string text;
    std::vector<std::size_t>
        border;               // border[n]: the longest proper prefix of text[0, n) that is also its suffix
    std::size_t matched = 0;  // length of the pattern's prefix at the end of the text
  };

  explicit StopSplitter(bool include_stop_string) : include_stop_string_(include_stop_string) {}

  std::optional<std::size_t> advance(char byte);

  std::vector<Pattern> patterns_;
  bool include_stop_string_;
  bool stopped_ = false;
  std::string held_;
};

}  // namespace octavo
