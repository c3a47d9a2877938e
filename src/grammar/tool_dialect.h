// How models write tool calls: one small description for each dialect, for writing (grammars, tool_calls.h)
// and for reading (serve/openai/tool_parser.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace octavo::grammar {

// How a model writes its calls. Literal text; what of it is a special token of the vocabulary becomes that
// token. Several calls are:
//
//   begin [ CALL separator CALL ... ] end      the brackets and commas of `list` only
//
// and one CALL, by its form:
//
//   object       call_begin {"NAME_KEY": "NAME", "KEY": ARGUMENTS} call_end    ahead of it "ID_KEY": "NUMBER"
//                where there is one
//   named        call_begin [name_prefix] NAME name_end ARGUMENTS call_end
//   parameters   call_begin NAME name_end BLOCK BLOCK ... call_end
//   python       call_begin NAME(parameter=literal, ...) call_end
//   gemma        call_begin NAME{parameter:value, ...} call_end    strings between two `quote`s, other values
//   as JSON harmony      gpt-oss' messages (grammar/harmony.h); read as `named` from what
//   serve/openai/output_processor.cc makes of them
//
// ARGUMENTS being a JSON object, and BLOCK
// `parameter_begin NAME parameter_name_end VALUE parameter_end`, with strings as they are and other values as
// JSON.
struct ToolDialect {
  enum class Form : std::uint8_t { object, named, parameters, python, gemma, harmony };

  std::string_view name;  // as in vLLM's --tool-call-parser
  Form form = Form::object;
  std::string_view begin = {}, end = {};
  bool list = false;
  std::string_view call_begin = {}, call_end = {}, separator = {};
  std::string_view id_key = {}, name_key = "name", key = "arguments";
  std::string_view name_end = {};
  std::string_view id_mark = {};  // models may write it and an id between name and name_end
  // After a name come ':' and a number; the call's id is all of them, with the name's prefix.
  bool numbered = false;
  std::string_view name_prefix = {};
  std::string_view parameter_begin = {}, parameter_name_end = {}, parameter_end = {};
  bool says_text =
      false;         // parameter_name_end is followed by `true">` where the value is text, else by `false">`
  bool xml = false;  // values have XML's entities, or stand between "<![CDATA[" and "]]>"
  std::string_view quote = {};
  bool nested_quotes = false;  // models do not escape quotes within strings
  // How calls start; text without calls does not hold it. Empty: they cannot be told from text, and calls of
  // strict tools cannot be enforced.
  std::string_view trigger = {};
  // The text that a reader searches for, if shorter than the trigger; and whether only at the beginning.
  std::string_view mark = {};
  bool at_beginning = false;
  // Another beginning of calls, up to a call's name or object. mark: the part that a reader looks for, empty:
  // it stands only between calls; end: replaces the dialect's end. words: the reader skips other text before
  // the first object.
  struct Opening {
    std::string_view mark, text, end = {};
    bool words = false;
  };
  // Forms besides that of the template. The reader accepts them for known tools; no grammar enforces them.
  struct Habits {
    std::span<const Opening> openings = {};
    std::span<const std::string_view> others = {};  // names of dialects whose calls they write, too
    bool open_end = false;                          // they stop without the call's closing marks
  };
  Habits habits = {};
  bool short_ids = false;  // of calls: the models' templates take nine letters and digits only
};

std::span<const ToolDialect> tool_dialects();
// Finds a dialect by its name or by the name of vLLM's parser for it; or null.
const ToolDialect* tool_dialect(std::string_view name);
// All those names.
std::vector<std::string_view> tool_dialect_names();

}  // namespace octavo::grammar
