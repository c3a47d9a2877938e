// Finds a tool call within reasoning text, because models sometimes call a tool before they end their
// reasoning.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "grammar/tool_dialect.h"
#include "serve/openai/tool_parser.h"

namespace octavo::openai {

// The result does not depend on how the text is split into pieces.
class CallWatch {
 public:
  struct Step {
    std::string thought;
    std::string text;  // if `ended`: the text from the beginning of the call on
    // whether a complete call of a known tool was read; all further text is not reasoning
    bool ended = false;
  };

  // Keeps a reference to the dialect.
  CallWatch(const grammar::ToolDialect& dialect, std::shared_ptr<const KnownTools> tools);

  Step push(std::string_view piece);
  // Call it at the end of the reasoning. Returns the text that is still held back.
  std::string finish();
  // Returns whether text is held back because it could be the beginning of a call.
  bool holds() const { return !held_.empty(); }

 private:
  ToolParser parser_;
  std::string held_;
};

}  // namespace octavo::openai
