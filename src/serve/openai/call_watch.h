// Watches thoughts for a tool call: models call tools before they close their thoughts.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "grammar/tool_dialect.h"
#include "serve/openai/tool_parser.h"

namespace octavo::openai {

// The joined parts do not depend on how the thoughts are cut into pieces.
class CallWatch {
 public:
  struct Step {
    std::string thought;
    std::string text;    // from the call on
    bool ended = false;  // a whole call of a known tool has come: what follows are no thoughts
  };

  // Refers to the dialect.
  CallWatch(const grammar::ToolDialect& dialect, std::shared_ptr<const KnownTools> tools);

  Step push(std::string_view piece);
  // The thoughts ended without a call: returns the text held back.
  std::string finish();
  // Whether the text so far could begin a call.
  bool holds() const { return !held_.empty(); }

 private:
  ToolParser parser_;
  std::string held_;
};

}  // namespace octavo::openai
