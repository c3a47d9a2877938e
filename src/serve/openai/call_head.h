// The head of a call: all text before its arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "grammar/tool_dialect.h"
#include "serve/openai/call_cursor.h"
#include "serve/openai/tool_parameters.h"

namespace octavo::openai {

// Which calls are accepted.
enum class CallPolicy : std::uint8_t {
  // Sends a complete call at once, and a long call earlier in pieces. A call that breaks off before it was
  // sent becomes content.
  stream,
  // Sends only complete calls.
  whole,
  // The text is thoughts: reading ends at the first complete call of a known tool. Without a mark, a call
  // must begin a line.
  thoughts,
};

struct CallHead {
  std::string name{}, id{};
  std::string whole{};  // arguments that are known at once, with the end of the object; "": they follow
  bool object = false;  // written as {"name", "arguments"}
  bool nameless = false;  // its id names no tool: the arguments decide
};

// Refers to its arguments.
class HeadReader {
 public:
  enum class Found : std::uint8_t { yes, no, more };

  HeadReader(const grammar::ToolDialect& dialect, const KnownTools& tools, CallPolicy policy, bool known_only)
      : dialect_(dialect), tools_(tools), policy_(policy), known_only_(known_only) {}

  const grammar::ToolDialect& dialect() const { return dialect_; }
  // Up to the first byte of arguments, or up to the end of arguments that are complete. first: behind the
  // mark.
  Found read(CallCursor& cursor, bool first, CallHead& head) const;

 private:
  // The opening may be the dialect's own, or one that models write; only for the latter the tool must be
  // known.
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

// The only tool that has all parameters in the call's arguments; "": no or several tools have them.
std::string tool_of(std::string_view arguments, const KnownTools& tools);

}  // namespace octavo::openai
