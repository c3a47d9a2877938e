// The head of a call: all text before its arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "grammar/tool_dialect.h"
#include "serve/openai/call_cursor.h"
#include "serve/openai/tool_parameters.h"

namespace octavo::openai {

enum class CallPolicy : std::uint8_t {
  // Sends a complete call at once, and a long call in pieces. If a call breaks off before a piece was sent,
  // its text becomes content.
  stream,
  // Sends only complete calls.
  whole,
  // For thoughts: reading ends at the first complete call of a known tool. A call without a mark must begin a
  // line.
  thoughts,
};

struct CallHead {
  std::string name{}, id{};
  std::string whole{};  // complete arguments if they are already known, with the end of the object; "": they
                        // follow
  bool object = false;  // the call is a JSON object {"name", "arguments"}
  bool nameless = false;  // the id names no tool: the arguments decide which tool is called
};

// Keeps references to the constructor's arguments.
class HeadReader {
 public:
  enum class Found : std::uint8_t { yes, no, more };

  HeadReader(const grammar::ToolDialect& dialect, const KnownTools& tools, CallPolicy policy, bool known_only)
      : dialect_(dialect), tools_(tools), policy_(policy), known_only_(known_only) {}

  const grammar::ToolDialect& dialect() const { return dialect_; }
  // Reads up to the first byte of the arguments, or up to their end if they are complete. first: the call is
  // the first one after the mark.
  Found read(CallCursor& cursor, bool first, CallHead& head) const;

 private:
  // Reads the dialect's own opening of a call. After other openings, which models also write, the tool must
  // be known.
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

// The only tool that has all parameters of the call; "": no tool or several tools have them.
std::string tool_of(std::string_view arguments, const KnownTools& tools);

}  // namespace octavo::openai
