#include "serve/openai/reasoning.h"

#include <algorithm>
#include <iterator>

namespace octavo::openai {

namespace {

struct Parser {
  std::string_view name, begin = "<think>", end = "</think>";
  bool from_start = true;
  std::string_view label{}, prefix{};
  bool ends_at_call = false;
};

struct TextParser {
  std::string_view name;
  ThoughtMarks marks;
  bool from_start = false;
};

constexpr std::string_view kHarmony = "openai_gptoss";

constexpr Parser kParsers[] = {
    {"cohere_command3", "<|START_THINKING|>", "<|END_THINKING|>", false},
    {"cohere_command4", "<|START_THINKING|>", "<|END_THINKING|>", false},
    {"deepseek_r1"},
    {.name = "deepseek_v3", .from_start = false},
    {.name = "deepseek_v4", .from_start = false, .ends_at_call = true},
    {"ernie45"},
    {.name = "gemma4",
     .begin = "<|channel>",
     .end = "<channel|>",
     .from_start = false,
     .label = "thought\n",
     .ends_at_call = true},
    {.name = "glm45", .ends_at_call = true},
    {.name = "glm47", .ends_at_call = true},
    {"holo2"},
    {.name = "hy_v3", .from_start = false},
    {.name = "inkling",
     .begin = "<|content_thinking|>",
     .end = "<|end_message|>",
     .from_start = false,
     .ends_at_call = true},
    {.name = "kimi_k2", .ends_at_call = true},
    {.name = "mimo", .ends_at_call = true},
    {.name = "minimax_m2", .ends_at_call = true},
    {.name = "minimax_m2_append_think", .prefix = "<think>"},
    {.name = "minimax_m3", .begin = "<mm:think>", .end = "</mm:think>", .from_start = false},
    {.name = "mistral", .begin = "[THINK]", .end = "[/THINK]", .from_start = false, .ends_at_call = true},
    {.name = "nemotron_v3", .ends_at_call = true},
    {.name = "poolside_v1", .from_start = false},
    {.name = "qwen3", .ends_at_call = true},
    {.name = "seed_oss", .begin = "<seed:think>", .end = "</seed:think>", .ends_at_call = true},
    {"solar_open2", "<|think:start|>", "<|think:end|>", false},
    {"step3"},
    {.name = "step3p5", .ends_at_call = true},
};

constexpr std::string_view kGraniteBegins[] = {"Here is my thought process:", "Here's my thought process:"};
constexpr std::string_view kGraniteEnds[] = {"Here is my response:", "Here's my response:"};
constexpr std::string_view kHunyuanBegins[] = {"<think>\n"};
constexpr std::string_view kHunyuanEnds[] = {"\n</think>\n<answer>\n"};
constexpr std::string_view kHunyuanClosings[] = {"\n</answer>"};
constexpr std::string_view kOlmoBegins[] = {"<think>"};
constexpr std::string_view kOlmoEnds[] = {"</think>"};

constexpr TextParser kTextParsers[] = {
    {"granite", {kGraniteBegins, kGraniteEnds, {}}},
    {"hunyuan_a13b", {kHunyuanBegins, kHunyuanEnds, kHunyuanClosings}},
    {"olmo3", {kOlmoBegins, kOlmoEnds, {}}, true},
};

}  // namespace

std::vector<std::string_view> reasoning_parsers() {
  std::vector<std::string_view> names;
  std::ranges::transform(kParsers, std::back_inserter(names), &Parser::name);
  std::ranges::transform(kTextParsers, std::back_inserter(names), &TextParser::name);
  names.push_back(kHarmony);
  std::ranges::sort(names);
  return names;
}

Result<ReasoningRule> reasoning_rule(std::string_view parser, const Tokenizer& tokenizer) {
  if (parser == kHarmony) {
    const auto tokens = HarmonyTokens::of(tokenizer);
    if (!tokens)
      return invalid("reasoning-parser",
                     "{} needs the special tokens of gpt-oss, which the tokenizer does not have", parser);
    return ReasoningRule{.harmony = tokens};
  }
  if (const auto text = std::ranges::find(kTextParsers, parser, &TextParser::name);
      text != std::end(kTextParsers))
    return ReasoningRule{.from_start = text->from_start, .text = &text->marks};
  const auto found = std::ranges::find(kParsers, parser, &Parser::name);
  if (found == std::end(kParsers))
    return invalid("reasoning-parser", "the reasoning parser {} does not exist", parser);
  const auto begin = tokenizer.id_of(found->begin), end = tokenizer.id_of(found->end);
  if (!begin || !end)
    return invalid("reasoning-parser", "{} needs the tokens {} and {}, which the tokenizer does not have",
                   parser, found->begin, found->end);
  return ReasoningRule{.begin = *begin,
                       .end = *end,
                       .from_start = found->from_start,
                       .label = found->label,
                       .prefix = found->prefix,
                       .ends_at_call = found->ends_at_call};
}

std::string_view own_reasoning_parser(const Tokenizer& tokenizer) {
  return HarmonyTokens::of(tokenizer) ? kHarmony : "";
}

bool opens_thoughts(const ThoughtMarks& marks, std::span<const std::int32_t> prompt,
                    const Tokenizer& tokenizer) {
  constexpr std::size_t kTail = 32;  // a marker has fewer bytes than this, and so fewer tokens
  const std::string tail = tokenizer.decode(prompt.last(std::min(kTail, prompt.size())), false).value_or("");
  const std::string_view text(tail.data(), tail.find_last_not_of(" \n") + 1);
  return std::ranges::any_of(marks.begins, [&](std::string_view mark) {
    return text.ends_with(mark.substr(0, mark.find_last_not_of('\n') + 1));
  });
}

bool begins_with_thoughts(const ReasoningRule& rule, std::span<const std::int32_t> prompt,
                          const Tokenizer& tokenizer, bool turned_off) {
  for (std::size_t i = prompt.size(); i-- > 0;) {
    if (prompt[i] == rule.begin) return true;
    if (prompt[i] == rule.end) return false;
    // Any other special token is the beginning of the last turn, so the search ends.
    if (tokenizer.is_special(prompt[i])) break;
  }
  return rule.from_start && !turned_off;
}

}  // namespace octavo::openai
