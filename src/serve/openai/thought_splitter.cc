#include "serve/openai/thought_splitter.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace octavo::openai {
namespace {

StopSplitter finds(std::span<const std::string_view> marks) {
  return StopSplitter::create({marks.begin(), marks.end()}, false).value();
}

}  // namespace

ThoughtSplitter::ThoughtSplitter(const ThoughtMarks& marks, bool open)
    : begins_(marks.begins), open_(open), ends_(finds(marks.ends)), closings_(finds(marks.closings)) {}

ThoughtSplitter::Step ThoughtSplitter::push(std::string_view piece) {
  Step step;
  for (const char byte : piece) advance(byte, step);
  return step;
}

ThoughtSplitter::Step ThoughtSplitter::finish() {
  Step step;
  if (state_ == State::start) leave_start(step);
  if (state_ == State::thoughts) step.thought += ends_.finish();
  if (state_ == State::text) step.text += closings_.finish();
  return step;
}

void ThoughtSplitter::advance(char byte, Step& step) {
  if (state_ == State::thoughts) {
    const StopSplitter::Step found = ends_.push({&byte, 1});
    step.thought += found.text;
    if (found.stop) state_ = State::text;
  } else if (state_ == State::text) {
    step.text += closings_.push({&byte, 1}).text;
  } else {
    held_ += byte;
    const std::string_view begun =
        std::string_view(held_).substr(std::min(held_.find_first_not_of(" \n"), held_.size()));
    if (std::ranges::find(begins_, begun) != begins_.end()) {
      held_.clear();
      state_ = State::thoughts;
    } else if (std::ranges::none_of(begins_,
                                    [&](std::string_view mark) { return mark.starts_with(begun); })) {
      leave_start(step);
    }
  }
}

// Handles an answer that does not begin with a marker.
void ThoughtSplitter::leave_start(Step& step) {
  state_ = open_ ? State::thoughts : State::text;
  for (const char byte : std::exchange(held_, {})) advance(byte, step);
}

}  // namespace octavo::openai
