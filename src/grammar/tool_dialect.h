// Describes how models write tool calls. Grammars (tool_calls.h) and parsers (serve/openai/tool_parser.h)
// use these descriptions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace octavo::grammar {

// One format of tool calls. All texts are literal. If a text is a special token of the vocabulary, the
// model writes this token. An output with calls is
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
// ARGUMENTS is a JSON object. BLOCK is `parameter.begin NAME parameter.name_end VALUE parameter.end`. VALUE
// is unquoted for strings, and JSON for other types.
struct ToolDialect {
  enum class Form : std::uint8_t { object, named, parameters, python, gemma, harmony };

  struct CallMarks {
    std::string_view begin = {}, end = {}, separator = {};
  };
  // Member names of a call's object.
  struct CallKeys {
    std::string_view id = {}, name = "name", arguments = "arguments";
  };
  struct ParameterMarks {
    std::string_view begin = {}, name_end = {}, end = {};
    // name_end is followed by `true">` if the value is a string, otherwise by `false">`
    bool marks_text = false;
    // values contain XML entities, or are between "<![CDATA[" and "]]>"
    bool xml = false;
  };

  std::string_view name;  // name of vLLM's parser (--tool-call-parser)
  Form form = Form::object;
  std::string_view begin = {}, end = {};
  bool list = false;
  CallMarks call = {};
  CallKeys keys = {};
  std::string_view name_end = {};
  // optional text between name and name_end, followed by an id
  std::string_view id_mark = {};
  // The name is followed by ':' and a number. The id of the call is name_prefix, name and number.
  bool numbered = false;
  std::string_view name_prefix = {};
  ParameterMarks parameter = {};
  std::string_view quote = {};
  bool nested_quotes = false;  // models do not escape quotes in strings
  // Text that begins every call and occurs nowhere else. "": the beginning of a call can also be normal text,
  // so grammars cannot constrain the arguments of strict tools.
  std::string_view trigger = {};
  // mark: text that parsers search for; "": they search for the trigger. at_beginning: the mark begins a call
  // only at the beginning of an output.
  std::string_view mark = {};
  bool at_beginning = false;
  // Another text that models write before a call's name or object. mark: the part of `text` that parsers
  // search for; "": this opening only occurs after another call. end: replaces the dialect's end. words:
  // parsers skip other text before the first object.
  struct Opening {
    std::string_view mark, text, end = {};
    bool words = false;
  };
  // Deviations from the model's chat template that models often write. Parsers accept them for known tools;
  // grammars do not allow them.
  struct Habits {
    std::span<const Opening> openings = {};
    std::span<const std::string_view> others = {};  // names of dialects that these models also write
    // models may omit call.end
    bool open_end = false;
  };
  Habits habits = {};
  // ids have nine letters and digits, as the templates of these models require
  bool short_ids = false;
};

std::span<const ToolDialect> tool_dialects();
// Accepts the dialect's name or vLLM's name of its parser. Returns null if the name is unknown.
const ToolDialect* tool_dialect(std::string_view name);
std::vector<std::string_view> tool_dialect_names();

}  // namespace octavo::grammar
