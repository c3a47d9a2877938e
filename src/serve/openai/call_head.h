// Reads the head of a tool call: everything before the arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "grammar/tool_dialect.h"
#include "serve/openai/call_cursor.h"
#include "serve/openai/tool_parameters.h"

namespace octavo::openai {

enum class CallPolicy : std::uint8_t {
  // Sends pieces of a call while the model writes it. If a call turns out to be invalid before its first
  // piece was sent, its text becomes content.
  stream,
  whole,
  // For reasoning text. Reading ends at the first complete call of a known tool. A call without a marker
  // must be at the beginning of a line.
  thoughts,
};

struct CallHead {
  std::string name{}, id{};
  std::string whole{};  // the complete arguments if the head contains them, otherwise ""
  bool object = false;
  // whether the call has only an id that names no tool, so that its arguments must decide which tool is
  // called
  bool nameless = false;
};

// Keeps references to the constructor's arguments.
class HeadReader {
 public:
  enum class Found : std::uint8_t { yes, no, more };

  HeadReader(const grammar::ToolDialect& dialect, const KnownTools& tools, CallPolicy policy, bool known_only)
      : dialect_(dialect), tools_(tools), policy_(policy), known_only_(known_only) {}

  const grammar::ToolDialect& dialect() const { return dialect_; }
  // Reads up to the first byte of the arguments, or to their end if the head contains them. first: whether
  // this is the first call after the marker.
  Found read(CallCursor& cursor, bool first, CallHead& head) const;

 private:
  // own_opening() reads the opening of the dialect. Models also write other openings (ToolDialect::Opening,
  // object_opening()); after these, the call must name a tool of the request.
  bool own_opening(CallCursor& cursor, bool first) const;
  bool object_opening(CallCursor& cursor, bool first) const;
  Found read_behind(CallCursor& cursor, bool marked, CallHead& head) const;
  bool name(CallCursor& cursor, CallHead& head) const;
  bool name_end(CallCursor& cursor, const CallHead& head) const;
  Found object(CallCursor& cursor, bool marked, CallHead& head) const;
  bool known(const CallHead& head, bool marked) const;

  const grammar::ToolDialect& dialect_;
  const KnownTools& tools_;
  const CallPolicy policy_;
  const bool known_only_;
};

// Returns the name of the only tool that has all parameters of the call, or "" if no tool or several tools
// have them.
std::string tool_of(std::string_view arguments, const KnownTools& tools);

}  // namespace octavo::openai
