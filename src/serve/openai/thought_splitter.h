// Separates reasoning from text for models whose markers are text instead of single tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "text/stop_strings.h"

namespace octavo::openai {

// Markers before the reasoning, between reasoning and text, and after the text. Each marker has several
// spellings.
struct ThoughtMarks {
  std::span<const std::string_view> begins, ends, closings;
};

// Splits an answer that arrives in pieces. The result does not depend on how the answer is split into pieces.
class ThoughtSplitter {
 public:
  struct Step {
    std::string thought, text;  // `thought` precedes `text`; both are without markers
  };

  // open: whether the answer begins with reasoning even without a marker.
  ThoughtSplitter(const ThoughtMarks& marks, bool open);

  Step push(std::string_view piece);
  // Call it at the end of the answer. Returns the text that is still held back.
  Step finish();
  bool thinks() const { return state_ == State::thoughts || (state_ == State::start && open_); }

 private:
  enum class State : std::uint8_t { start, thoughts, text };

  void advance(char byte, Step& step);
  void leave_start(Step& step);

  std::span<const std::string_view> begins_;
  bool open_;
  State state_ = State::start;
  std::string held_;  // text at the start of the answer that was held back
  StopSplitter ends_, closings_;
};

}  // namespace octavo::openai
