#include "serve/openai/reasoning.h"

#include <algorithm>
#include <iterator>

namespace octavo::openai {

namespace {

struct Parser {
  std::string_view name, begin = "<think>", end = "</think>";
  bool from_start = true;
};

constexpr std::string_view kHarmony = "openai_gptoss";

constexpr Parser kParsers[] = {
    {"deepseek_r1"},
    {.name = "deepseek_v3", .from_start = false},
    {"ernie45"},
    {"glm45"},
    {"glm47"},
    {"holo2"},
    {"kimi_k2"},
    {"mimo"},
    {"minimax_m2"},
    {.name = "mistral", .begin = "[THINK]", .end = "[/THINK]", .from_start = false},
    {"nemotron_v3"},
    {"qwen3"},
    {.name = "seed_oss", .begin = "<seed:think>", .end = "</seed:think>"},
    {"step3"},
    {"step3p5"},
};

}  // namespace

std::vector<std::string_view> reasoning_parsers() {
  std::vector<std::string_view> names;
  std::ranges::transform(kParsers, std::back_inserter(names), &Parser::name);
  names.push_back(kHarmony);
  return names;
}

Result<ReasoningRule> reasoning_rule(std::string_view parser, const Tokenizer& tokenizer) {
  if (parser == kHarmony) {
    const auto tokens = HarmonyTokens::of(tokenizer);
    if (!tokens)
      return invalid("reasoning-parser", "{} needs the tokens of gpt-oss, which the tokenizer does not have",
                     parser);
    return ReasoningRule{.harmony = tokens};
  }
  const auto found = std::ranges::find(kParsers, parser, &Parser::name);
  if (found == std::end(kParsers)) return invalid("reasoning-parser", "there is none of the name {}", parser);
  const auto begin = tokenizer.id_of(found->begin), end = tokenizer.id_of(found->end);
  if (!begin || !end)
    return invalid("reasoning-parser", "{} needs the tokens {} and {}, which the tokenizer does not have",
                   parser, found->begin, found->end);
  return ReasoningRule{.begin = *begin, .end = *end, .from_start = found->from_start};
}

std::string_view own_reasoning_parser(const Tokenizer& tokenizer) {
  return HarmonyTokens::of(tokenizer) ? kHarmony : "";
}

bool begins_with_thoughts(const ReasoningRule& rule, std::span<const std::int32_t> prompt,
                          const Tokenizer& tokenizer, bool turned_off) {
  for (std::size_t i = prompt.size(); i-- > 0;) {
    if (prompt[i] == rule.begin) return true;
    if (prompt[i] == rule.end) return false;
    if (tokenizer.is_special(prompt[i])) break;  // the turn begins here
  }
  return rule.from_start && !turned_off;
}

}  // namespace octavo::openai
