// Fuzz test: passes model output in arbitrary pieces to every parser of tool calls and every parser of
// reasoning with text markers. The joined results must equal the result for the whole text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "grammar/tool_dialect.h"
#include "serve/openai/reasoning.h"
#include "serve/openai/tool_parser.h"
#include "serve/test_tokenizer.h"

namespace {

using namespace octavo;
using openai::CallPiece;
using openai::ParsedText;

// Splits the text into pieces. The text itself determines the lengths of the pieces.
template <class Take>
void in_pieces(std::string_view text, Take take) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = 1 + static_cast<unsigned char>(text[at]) % 7;
    take(text.substr(at, size));
    at += size;
  }
}

// Joins pieces as a client does.
void join(ParsedText& all, const ParsedText& news) {
  const std::size_t before = all.content.size();
  all.content += news.content;
  for (const CallPiece& piece : news.calls) {
    CHECK(piece.index >= 0 && piece.index <= static_cast<int>(all.calls.size()));
    if (piece.index == static_cast<int>(all.calls.size())) {
      CHECK(!piece.name.empty());
      all.calls.push_back(piece);
      all.calls.back().at += before;
    } else {
      CHECK(piece.name.empty());
      all.calls[static_cast<std::size_t>(piece.index)].arguments += piece.arguments;
    }
  }
}

void read_calls(const grammar::ToolDialect& dialect, std::string_view text, bool parallel) {
  constexpr std::string_view kSchema = R"({"properties": {"city": {"type": "string"}, "n": {"type": "integer"}}})";
  static const auto tools = std::make_shared<const openai::KnownTools>(
      openai::KnownTools{{"get_weather", openai::ToolParameters(kSchema, false)}, {"stop", {}}, {"f", {}}});
  openai::ToolParser at_once(dialect, tools, parallel), pieces(dialect, tools, parallel);
  ParsedText whole, joined;
  join(whole, at_once.push(text));
  join(whole, at_once.finish());
  in_pieces(text, [&](std::string_view piece) { join(joined, pieces.push(piece)); });
  join(joined, pieces.finish());
  CHECK(whole == joined);
}

void read_thoughts(const openai::ReasoningRule& rule, std::string_view text, bool open) {
  openai::ThoughtSplitter at_once(*rule.text, open), pieces(*rule.text, open);
  openai::ThoughtSplitter::Step whole, joined;
  const auto add = [](openai::ThoughtSplitter::Step& all, const openai::ThoughtSplitter::Step& step) {
    all.thought += step.thought;
    all.text += step.text;
  };
  add(whole, at_once.push(text));
  add(whole, at_once.finish());
  in_pieces(text, [&](std::string_view piece) { add(joined, pieces.push(piece)); });
  add(joined, pieces.finish());
  CHECK(whole.thought == joined.thought && whole.text == joined.text);
  CHECK(whole.thought.size() + whole.text.size() <= text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto dialects = grammar::tool_dialects();
  static const std::vector<openai::ReasoningRule> rules = [] {
    const Tokenizer tokenizer = byte_tokenizer();
    std::vector<openai::ReasoningRule> by_words;
    for (const std::string_view name : openai::reasoning_parsers())
      if (const auto rule = openai::reasoning_rule(name, tokenizer); rule && rule->text)
        by_words.push_back(*rule);
    return by_words;
  }();
  if (size < 2) return 0;
  const std::size_t parser = data[0] % (dialects.size() + rules.size());
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const bool way = data[1] % 2;
  if (parser < dialects.size())
    read_calls(dialects[parser], text, way);
  else
    read_thoughts(rules[parser - dialects.size()], text, way);
  return 0;
}
