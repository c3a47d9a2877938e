// Finds the tool calls in a model's answer while it is being written (tool_choice `auto`).
//
//   ToolParser parser(dialect, tools, parallel);
//   for each piece of text: send(parser.push(piece));
//   send(parser.finish());
//
// Promise: however a text is cut into pieces, the parts joined are the same. What begins like a call and is
// none comes out as content. White space around calls is their layout, and belongs to neither.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/tool_dialect.h"
#include "serve/openai/call_cursor.h"

namespace octavo::openai {

// A piece of a call. The first one of a call has its name.
struct CallPiece {
  int index = 0;
  std::string name{};
  std::string arguments{};  // of the text of a JSON object
  std::string id{};         // with the name, where the model gave it one

  bool operator==(const CallPiece&) const = default;
};

struct ParsedText {
  std::string content{};
  std::vector<CallPiece> calls{};  // at most one of each call

  void append(ParsedText&& next);
  bool operator==(const ParsedText&) const = default;
};

// The tools of a request: by name, those parameters whose values dialects of form `parameters` write as text.
using KnownTools = std::map<std::string, std::vector<std::string>, std::less<>>;

class ToolParser {
 public:
  // Keeps the dialect. Without `parallel`, calls behind the first one are dropped.
  ToolParser(const grammar::ToolDialect& dialect, std::shared_ptr<const KnownTools> tools, bool parallel);

  ParsedText push(std::string_view text);
  // There is no more text.
  ParsedText finish();
  // How many have begun.
  int calls() const { return calls_; }

 private:
  enum class State : std::uint8_t {
    text,        // looks for a mark
    first_call,  // at a mark that may begin a call
    arguments,   // in a JSON object that is sent on as it comes
    members,     // behind the arguments of {"name", "arguments", ...}
    parameter,   // between the blocks of form `parameters`
    text_value,  // in a value that is text
    json_value,  // in any other value
    literals,    // between the parameters of the forms `python` and `gemma`
    call_end,    // behind a call, before what closes it
    next_call,   // behind a call, where another one may follow
  };
  enum class Step : std::uint8_t { done, more };  // more: can go on only with more text
  enum class Found : std::uint8_t { yes, no, more };

  // Each works on the beginning of buffer_.
  Step step();
  Step read_text();
  Step read_call(bool first);
  Step stream_arguments();
  Step skip_members();
  Step read_parameter();
  Step stream_text_value();
  Step read_json_value();
  Step read_literal();
  Step read_call_end();
  Step read_next();

  Found call_head(CallCursor& cursor, bool first);
  Found object_head(CallCursor& cursor);
  bool known(const std::string& name) const;
  void begin_call();
  void end_arguments();
  void no_call();
  void no_next_call();

  void emit_content(std::string_view content);
  void emit_arguments(std::string_view arguments);
  void drop(std::size_t bytes) { buffer_.erase(0, bytes); }
  void go(State state) { state_ = state; }

  const grammar::ToolDialect& dialect_;
  const std::shared_ptr<const KnownTools> tools_;
  const std::string_view mark_;
  const bool parallel_;

  State state_ = State::text;
  std::string buffer_;  // what may still be text or a call
  std::string layout_;  // white space before a mark
  bool searching_ = true;
  bool behind_call_ = false;  // nothing but white space has come since the last call
  int calls_ = 0;

  // Of the call being read.
  std::string name_, id_;
  std::string whole_;  // arguments that are known at once, with the end of the object; "": they follow
  JsonScan scan_;
  bool first_parameter_ = true;
  bool at_value_ = false;  // nothing of the text value has been sent
  bool in_cdata_ = false;

  ParsedText out_;
};

}  // namespace octavo::openai
