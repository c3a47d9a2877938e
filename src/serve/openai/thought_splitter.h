// Separates thoughts from text for models that mark thoughts with words instead of single tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "text/stop_strings.h"

namespace octavo::openai {

// Marks before thoughts, between thoughts and text, and after the text. Each mark has several spellings.
struct ThoughtMarks {
  std::span<const std::string_view> begins, ends, closings;
};

// The result does not depend on how the answer is split into pieces.
class ThoughtSplitter {
 public:
  struct Step {
    std::string thought, text;  // the thought comes before the text; both are without marks
  };

  // open: the answer begins with thoughts, even without a mark.
  ThoughtSplitter(const ThoughtMarks& marks, bool open);

  Step push(std::string_view piece);
  // At the end of the text: returns the text that was held back.
  Step finish();
  bool thinks() const { return state_ == State::thoughts || (state_ == State::start && open_); }

 private:
  enum class State : std::uint8_t { start, thoughts, text };

  void advance(char byte, Step& step);
  void leave_start(Step& step);

  std::span<const std::string_view> begins_;
  bool open_;
  State state_ = State::start;
  std::string held_;  // text at the start that was held back
  StopSplitter ends_, closings_;
};

}  // namespace octavo::openai
