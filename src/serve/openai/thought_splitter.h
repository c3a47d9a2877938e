// Finds thoughts that are marked by words instead of single tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "text/stop_strings.h"

namespace octavo::openai {

// Marks before thoughts, between thoughts and text, and after the text; each has several spellings.
struct ThoughtMarks {
  std::span<const std::string_view> begins, ends, closings;
};

// The joined parts do not depend on how the answer is cut into pieces.
class ThoughtSplitter {
 public:
  struct Step {
    std::string thought, text;  // in this order; without the marks
  };

  // open: the answer begins with thoughts, with or without a mark.
  ThoughtSplitter(const ThoughtMarks& marks, bool open);

  Step push(std::string_view piece);
  // The text has ended: returns what was held back.
  Step finish();
  bool thinks() const { return state_ == State::thoughts || (state_ == State::start && open_); }

 private:
  enum class State : std::uint8_t { start, thoughts, text };

  void advance(char byte, Step& step);
  void leave_start(Step& step);

  std::span<const std::string_view> begins_;
  bool open_;
  State state_ = State::start;
  std::string held_;  // at the start
  StopSplitter ends_, closings_;
};

}  // namespace octavo::openai
