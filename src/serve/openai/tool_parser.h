// Finds the tool calls in a model's answer while it is being written (tool_choice `auto`).
//
//   ToolParser parser(dialect, tools, parallel);
//   for each piece of text: send(parser.push(piece));
//   send(parser.finish());
//
// Promise: however a text is cut into pieces, the parts joined are the same. Text that only begins like a
// call comes out as content. White space around calls is their layout, and belongs to neither.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/tool_dialect.h"
#include "serve/openai/call_arguments.h"
#include "serve/openai/call_cursor.h"
#include "serve/openai/call_head.h"
#include "serve/openai/tool_parameters.h"

namespace octavo::openai {

// A piece of a call. The first piece has the name.
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

class ToolParser {
 public:
  // Keeps the dialect. Without `parallel`, calls after the first one are dropped. known_only: calls of tools
  // that `tools` does not list are content.
  ToolParser(const grammar::ToolDialect& dialect, std::shared_ptr<const KnownTools> tools, bool parallel,
             CallPolicy policy = CallPolicy::stream, bool known_only = false);

  ParsedText push(std::string_view text);
  // The text has ended. whole: not by a limit, so that the last call lacks no parameter.
  ParsedText finish(bool whole = false);
  // Number of calls sent, including the current one.
  int calls() const { return calls_; }

 private:
  enum class State : std::uint8_t {
    text,         // looks for a mark
    first_call,   // at a mark that may begin a call
    arguments,    // in the arguments of a call
    members,      // behind the arguments of {"name", "arguments", ...}
    call_end,     // behind a call, before what closes it
    next_call,    // behind a call, where another one may follow
    other_json,   // in a JSON object that is no call, where nothing else marks calls
    broken_item,  // at an item of a list that is no call
  };
  enum class Step : std::uint8_t { done, more };  // more: needs more text
  // Position of a mark in the buffer, or the number of bytes at its end that could begin one.
  struct Mark {
    std::size_t at = std::string::npos, size = 0, unsettled = 0;
  };

  // Each reads from the beginning of buffer_.
  void run();
  Step step();
  Step read_text();
  Step read_call();
  Step read_arguments();
  Step skip_members();
  Step read_call_end();
  Step read_next();
  Step skip_json();

  const grammar::ToolDialect& own() const { return forms_.front().dialect(); }
  // Dialect of the calls after the last mark.
  const grammar::ToolDialect& now() const { return forms_[form_].dialect(); }
  HeadReader::Found read_head(CallCursor& cursor);
  void close_arguments();
  void add_marks(const grammar::ToolDialect& dialect, Mark& found) const;
  Mark find_mark() const;
  std::size_t find_own_mark() const;
  bool begins_line(std::size_t at) const;
  void begin_call();
  void send_call();
  void no_call();
  void leave();
  Step skip_item();

  void emit_content(std::string_view content);
  void emit_arguments(std::string_view arguments);
  void drop(std::size_t bytes) { buffer_.erase(0, bytes); }
  void go(State state) { state_ = state; }

  const std::shared_ptr<const KnownTools> tools_;
  const std::string_view mark_;
  const bool parallel_;
  const CallPolicy policy_;
  std::vector<HeadReader> forms_;  // the dialect, then the others that its models write

  State state_ = State::text;
  std::string buffer_;    // what may still be text or a call
  std::string layout_;    // white space before a mark
  bool at_start_ = true;  // nothing but white space has come
  bool at_line_start_ = true;
  bool behind_call_ = false;  // nothing but white space has come since the last call
  std::size_t form_ = 0;      // in forms_
  bool first_ = true;         // the call being read is the first one behind its mark
  bool broken_list_ = false;  // of the list being read, no call has been taken, and items are content
  bool last_ = false;         // no more text comes
  std::size_t mark_size_ = 0;
  int calls_ = 0;

  // The call being read:
  CallHead head_;
  std::unique_ptr<ArgumentsReader> reader_;
  bool held_ = false;      // nothing of it has been sent
  std::string raw_;        // while held: all text from its beginning on
  std::string arguments_;  // while held
  JsonScan scan_;          // of other_json

  ParsedText out_;
};

}  // namespace octavo::openai
