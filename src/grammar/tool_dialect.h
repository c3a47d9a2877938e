// Formats in which models write tool calls: one description for each dialect. Grammars (tool_calls.h) and
// parsers (serve/openai/tool_parser.h) use it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace octavo::grammar {

// How a model writes its calls. All texts are literal. If a text is a special token of the vocabulary, the
// model writes the token. Several calls are:
//
//   begin [ CALL call.separator CALL ... ] end      brackets and commas only with `list`
//
// The form defines a CALL:
//
//   object       call.begin {"keys.name": "NAME", "keys.arguments": ARGUMENTS} call.end
//                begins with the member "keys.id": "NUMBER" if keys.id is set
//   named        call.begin [name_prefix] NAME name_end ARGUMENTS call.end
//   parameters   call.begin NAME name_end BLOCK BLOCK ... call.end
//   python       call.begin NAME(parameter=literal, ...) call.end
//   gemma        call.begin NAME{parameter:value, ...} call.end
//                strings are between two `quote`s, other values are JSON
//   harmony      messages of gpt-oss (grammar/harmony.h)
//                serve/openai/output_processor.cc converts them to the form `named`
//
// ARGUMENTS is a JSON object. BLOCK is `parameter.begin NAME parameter.name_end VALUE parameter.end`;
// strings are unquoted, other values are JSON.
struct ToolDialect {
  enum class Form : std::uint8_t { object, named, parameters, python, gemma, harmony };

  struct CallMarks {
    std::string_view begin = {}, end = {}, separator = {};
  };
  // Names of the members in a call's object.
  struct CallKeys {
    std::string_view id = {}, name = "name", arguments = "arguments";
  };
  struct ParameterMarks {
    std::string_view begin = {}, name_end = {}, end = {};
    bool says_text = false;  // name_end is followed by `true">` if the value is text, otherwise by `false">`
    bool xml = false;        // values contain XML's entities, or are between "<![CDATA[" and "]]>"
  };

  std::string_view name;  // as in vLLM's --tool-call-parser
  Form form = Form::object;
  std::string_view begin = {}, end = {};
  bool list = false;
  CallMarks call = {};
  CallKeys keys = {};
  std::string_view name_end = {};
  std::string_view id_mark = {};  // text between name and name_end, followed by an id; models may write both
  // The name is followed by ':' and a number. The call's id is name_prefix, name and number.
  bool numbered = false;
  std::string_view name_prefix = {};
  ParameterMarks parameter = {};
  std::string_view quote = {};
  bool nested_quotes = false;  // models do not escape quotes inside strings
  // Text that begins calls and occurs nowhere else. If it is empty, calls cannot be distinguished from
  // text, so calls of strict tools cannot be enforced.
  std::string_view trigger = {};
  // mark: text that a reader searches for, if it is shorter than the trigger. at_beginning: the mark counts
  // only at the beginning of an answer.
  std::string_view mark = {};
  bool at_beginning = false;
  // Another text that can begin a call, up to the call's name or object. mark: the part that a reader
  // searches for; empty: this opening occurs only between calls. end: replaces the dialect's end. words:
  // the reader skips other text before the first object.
  struct Opening {
    std::string_view mark, text, end = {};
    bool words = false;
  };
  // Forms that models write in addition to the template's form. The reader accepts them for known tools. No
  // grammar enforces them.
  struct Habits {
    std::span<const Opening> openings = {};
    std::span<const std::string_view> others = {};  // names of other dialects that these models also write
    bool open_end = false;                          // models may omit the closing marks of the call
  };
  Habits habits = {};
  bool short_ids = false;  // ids of calls have nine letters and digits, as the models' templates require
};

std::span<const ToolDialect> tool_dialects();
// Finds a dialect by its name, or by the name of vLLM's parser for it. Returns null if the name is unknown.
const ToolDialect* tool_dialect(std::string_view name);
std::vector<std::string_view> tool_dialect_names();

}  // namespace octavo::grammar
