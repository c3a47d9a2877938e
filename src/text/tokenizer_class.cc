#include "text/tokenizer_class.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace octavo {
namespace {

namespace json = boost::json;

// Whether the flags add_bos_token and add_eos_token replace the post-processor of tokenizer.json, as in
// transformers 4.57 (transformers 5 ignores these flags). by_flags: if at least one flag is given;
// add_bos_token is true by default. always: both flags are false by default.
enum class Framing : std::uint8_t { never, by_flags, always };

struct TokenizerClass {
  std::string_view name;  // "Llama" for LlamaTokenizer and LlamaTokenizerFast
  ClassTokens tokens = {};
  Framing framing = Framing::never;
  bool leading_space = false;  // GPT-2's classes: the config decides whether a space is added before a text
  bool letters =
      false;  // BERT's classes: the config decides about upper case, accents and Chinese characters
};

// The classes are those of transformers, and InternLM2's class from the repositories of its models.
constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr TokenizerClass kClasses[] = {
    {.name = "Bert", .letters = true},
    {.name = "Bloom", .tokens = {"<s>", "</s>"}},
    {.name = "CodeGen", .tokens = {kEndOfText, kEndOfText}, .leading_space = true},
    {.name = "CodeLlama", .tokens = {"<s>", "</s>"}, .framing = Framing::by_flags},
    {.name = "Cohere", .tokens = {"<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>"}, .framing = Framing::by_flags},
    {.name = "DebertaV2", .tokens = {"[CLS]", "[SEP]"}},
    {.name = "DistilBert", .letters = true},
    {.name = "Electra", .letters = true},
    {.name = "GPT2", .tokens = {kEndOfText, kEndOfText}, .leading_space = true},
    {.name = "GPTNeoX",
     .tokens = {kEndOfText, kEndOfText},
     .framing = Framing::always,
     .leading_space = true},
    {.name = "Gemma", .tokens = {"<bos>", "<eos>"}, .framing = Framing::by_flags},
    {.name = "InternLM2", .tokens = {"<s>", "</s>"}, .framing = Framing::by_flags},
    {.name = "Llama", .tokens = {"<s>", "</s>"}, .framing = Framing::by_flags},
    {.name = "MPNet", .letters = true},
    {.name = "Qwen2", .tokens = {"", kEndOfText}, .leading_space = true},
    {.name = "Roberta", .tokens = {"<s>", "</s>"}, .leading_space = true},
    {.name = "T5", .tokens = {"", "</s>"}},
    {.name = "Whisper", .tokens = {kEndOfText, kEndOfText}, .leading_space = true},
    {.name = "XLMRoberta", .tokens = {"<s>", "</s>"}},
};

constexpr std::pair<std::string_view, std::string_view> kClassOfModel[] = {
    {"gemma", "GemmaTokenizer"},       {"gemma2", "GemmaTokenizer"},   {"gemma3", "GemmaTokenizer"},
    {"gemma3_text", "GemmaTokenizer"}, {"qwen2", "Qwen2Tokenizer"},    {"qwen2_moe", "Qwen2Tokenizer"},
    {"qwen3", "Qwen2Tokenizer"},       {"qwen3_moe", "Qwen2Tokenizer"}};

// Unknown classes have no rules.
const TokenizerClass& class_of(const json::object& config) {
  static constexpr TokenizerClass kOther{};
  const auto* given = config.if_contains("tokenizer_class");
  std::string_view name = given != nullptr && given->is_string() ? std::string_view(given->get_string()) : "";
  for (const std::string_view suffix : {"Fast", "Tokenizer"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  const auto* found = std::ranges::find(kClasses, name, &TokenizerClass::name);
  return found == std::end(kClasses) ? kOther : *found;
}

// Sets the field to `usual` unless it is a boolean.
void set_flag(json::object& config, std::string_view field, bool usual) {
  json::value& value = config[field];
  if (!value.is_bool()) value = usual;
}

void set_framing(json::object& config, Framing framing) {
  constexpr std::string_view kBos = "add_bos_token", kEos = "add_eos_token";
  const bool given = config.contains(kBos) || config.contains(kEos);
  if (framing == Framing::never || (framing == Framing::by_flags && !given)) {
    config.erase(kBos);
    config.erase(kEos);
    return;
  }
  set_flag(config, kBos, framing == Framing::by_flags && !config.contains(kBos));  // null counts as false
  set_flag(config, kEos, false);
}

}  // namespace

std::optional<std::string_view> tokenizer_class_of(std::string_view model_type) {
  for (const auto& [type, name] : kClassOfModel)
    if (type == model_type) return name;
  return std::nullopt;
}

ClassTokens class_tokens(const json::object& config) { return class_of(config).tokens; }

void apply_class(json::object& config) {
  const TokenizerClass& rules = class_of(config);
  set_framing(config, rules.framing);
  if (rules.leading_space)
    set_flag(config, "add_prefix_space", false);
  else
    config.erase("add_prefix_space");
  if (rules.letters) {
    set_flag(config, "do_lower_case", true);
    set_flag(config, "tokenize_chinese_chars", true);
  } else {
    for (const char* field : {"do_lower_case", "tokenize_chinese_chars", "strip_accents"})
      config.erase(field);
  }
}

}  // namespace octavo
