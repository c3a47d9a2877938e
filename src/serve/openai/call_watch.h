// Finds a tool call inside thoughts: models sometimes call a tool before they close their thoughts.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "grammar/tool_dialect.h"
#include "serve/openai/tool_parser.h"

namespace octavo::openai {

// The result does not depend on how the thoughts are split into pieces.
class CallWatch {
 public:
  struct Step {
    std::string thought;
    std::string text;    // text from the beginning of the call
    bool ended = false;  // a complete call of a known tool was read: all further text is not thoughts
  };

  // Keeps a reference to the dialect.
  CallWatch(const grammar::ToolDialect& dialect, std::shared_ptr<const KnownTools> tools);

  Step push(std::string_view piece);
  // At the end of the thoughts: returns the text that was held back.
  std::string finish();
  // Whether held-back text could be the beginning of a call.
  bool holds() const { return !held_.empty(); }

 private:
  ToolParser parser_;
  std::string held_;
};

}  // namespace octavo::openai
