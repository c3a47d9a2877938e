// Finds tool calls in a model's answer while the answer is generated (tool_choice `auto`).
//
//   ToolParser parser(dialect, tools, parallel);
//   for each piece of text: send(parser.push(piece));
//   send(parser.finish());
//
// The joined output does not depend on how the text is split into pieces. Text that only looks like the
// beginning of a call becomes content. White space around calls is dropped, except between two texts.
#pragma once

#include <cstddef>
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

// A piece of a call. Only the first piece has the name.
struct CallPiece {
  int index = 0;
  std::string name{};
  std::string arguments{};  // next piece of the arguments, which are a JSON object
  std::string id{};         // id that the model wrote; sent with the name
  std::size_t at = 0;       // number of bytes of ParsedText::content before the piece

  bool operator==(const CallPiece&) const = default;
};

struct ParsedText {
  std::string content{};
  std::vector<CallPiece> calls{};  // pieces of calls, at most one for each call

  void append(ParsedText&& next);
  bool operator==(const ParsedText&) const = default;
};

class ToolParser {
 public:
  // Keeps a reference to the dialect. parallel: if false, calls after the first one are dropped. known_only:
  // if true, calls of unknown tools become content.
  ToolParser(const grammar::ToolDialect& dialect, std::shared_ptr<const KnownTools> tools, bool parallel,
             CallPolicy policy = CallPolicy::stream, bool known_only = false);

  ParsedText push(std::string_view text);
  // Call it at the end of the text. whole: whether the model ended the text itself (not a limit), so that the
  // last call has all its parameters.
  ParsedText finish(bool whole = false);
  // Returns the number of calls so far, including the current one.
  int calls() const { return calls_; }

 private:
  enum class State : std::uint8_t {
    text,         // searches for a marker that begins a call
    first_call,   // at a marker that may begin a call
    arguments,    // in the arguments of a call
    members,      // after the arguments in {"name", "arguments", ...}
    call_end,     // after a call, before the closing marker
    next_call,    // after a call, where another call may follow
    other_json,   // in a JSON object that is not a call, for dialects without other markers
    broken_item,  // at a list item that is not a call
  };
  enum class Step : std::uint8_t { done, more };  // more: needs more text
  struct Call {
    CallHead head;
    std::unique_ptr<ArgumentsReader> reader;
    bool held = false;      // whether nothing of the call was sent yet
    std::string raw;        // while held: the text from the beginning of the call
    std::string arguments;  // arguments so far, while the call is held
  };
  // White space around markers and calls, which becomes content only between two texts.
  struct Layout {
    std::string space;        // white space since the last content
    bool after_text = false;  // whether there is content before it
    bool after_call = false;  // whether only white space was read since the last call
  };
  // at, size: position of a marker in buffer_. unsettled: if there is no marker, the number of bytes at the
  // end of buffer_ that could begin one.
  struct Mark {
    std::size_t at = std::string::npos, size = 0, unsettled = 0;
    bool restarts = false;  // whether the marker is the end of reasoning, after which the answer begins
  };

  // Each of the reading functions reads from the beginning of buffer_.
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

  void emit_layout();
  void emit_content(std::string_view content);
  void emit_arguments(std::string_view arguments);
  void drop(std::size_t bytes) { buffer_.erase(0, bytes); }
  void go(State state) { state_ = state; }

  const std::shared_ptr<const KnownTools> tools_;
  const std::string_view mark_;
  const bool parallel_;
  const CallPolicy policy_;
  std::vector<HeadReader> forms_;  // readers of the dialect and of the dialects in habits.others

  State state_ = State::text;
  std::string buffer_;    // text that may be content or a call
  Layout layout_;
  bool at_start_ = true;  // whether only white space was read since the answer began
  bool at_line_start_ = true;
  std::size_t form_ = 0;
  bool first_ = true;  // whether the current call is the first one after its marker
  // whether no call of the current list was valid, so that its items become content
  bool broken_list_ = false;
  bool last_ = false;  // whether no more text follows
  std::size_t mark_size_ = 0;
  int calls_ = 0;

  Call call_;
  JsonScan scan_;  // used in state other_json

  ParsedText out_;
};

}  // namespace octavo::openai
