#include "serve/openai/call_watch.h"

#include <utility>

namespace octavo::openai {

CallWatch::CallWatch(const grammar::ToolDialect& dialect, std::shared_ptr<const KnownTools> tools)
    : parser_(dialect, std::move(tools), true, CallPolicy::thoughts) {}

CallWatch::Step CallWatch::push(std::string_view piece) {
  held_ += piece;
  Step step{.thought = parser_.push(piece).content, .text = {}};
  held_.erase(0, step.thought.size());
  step.ended = parser_.calls() > 0;
  if (step.ended) step.text = std::exchange(held_, {});
  return step;
}

std::string CallWatch::finish() { return std::exchange(held_, {}); }

}  // namespace octavo::openai
