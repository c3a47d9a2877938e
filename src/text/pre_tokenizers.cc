#include "text/pre_tokenizers.h"

#include <algorithm>
#include <array>

namespace octavo {
namespace {

using OneSplit = std::array<std::string_view, 1>;

// Splits a text into words with the preceding character, numbers of up to three digits, other characters,
// and white space.
constexpr OneSplit kThreeDigits = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr OneSplit kOneDigit = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)"};
// Also ends a word between a lower-case and an upper-case letter.
constexpr OneSplit kTekken = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr OneSplit kGpt4o = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
// Like kGpt4o, but a run of Chinese characters is a separate word.
constexpr OneSplit kKimi = {
    R"([\p{Han}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr OneSplit kDigit = {R"(\p{N})"};
constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
constexpr std::array<std::string_view, 3> kFalcon = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Words,
                                                     "[0-9][0-9][0-9]"};
constexpr std::array<std::string_view, 4> kDefault = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Words, R"(\p{N}+)",
                                                      "[0-9][0-9][0-9]"};
constexpr std::array<std::string_view, 5> kDeepseekCoder = {
    R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", R"([\x{4e00}-\x{9fa5}\x{0800}-\x{4e00}\x{ac00}-\x{d7ff}]+)",
    R"(\p{N})"};
constexpr std::array<std::string_view, 3> kDeepseekV3 = {
    R"(\p{N}{1,3})", R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr std::array kPreTokenizers = {
    PreTokenizer{"chatglm-bpe", kThreeDigits},
    PreTokenizer{"codeshell", kDigit, true},
    PreTokenizer{"command-r", kDigit, true},
    PreTokenizer{"dbrx", kThreeDigits},
    PreTokenizer{"deepseek-coder", kDeepseekCoder},
    PreTokenizer{"deepseek-r1-qwen", kOneDigit},
    PreTokenizer{"deepseek-v3", kDeepseekV3},
    PreTokenizer{"default", kDefault},
    PreTokenizer{"exaone", kDigit, true},
    PreTokenizer{"falcon", kFalcon},
    PreTokenizer{"falcon3", kThreeDigits, false, true, true},
    PreTokenizer{"glm4", kThreeDigits},
    PreTokenizer{"gpt-2", {}, true},
    PreTokenizer{"gpt-4o", kGpt4o},
    PreTokenizer{"kimi-k2", kKimi, false, true},
    PreTokenizer{"lfm2", kThreeDigits, false, true, true},
    PreTokenizer{"llama-bpe", kThreeDigits, false, true, true},
    PreTokenizer{"llama-v3", kThreeDigits, false, true, true},
    PreTokenizer{"llama3", kThreeDigits, false, true, true},
    PreTokenizer{"llama4", kGpt4o},
    PreTokenizer{"megrez", kOneDigit},
    PreTokenizer{"minerva-7b", kDigit, true},
    PreTokenizer{"mpt", {}, true},
    PreTokenizer{"olmo", {}, true},
    PreTokenizer{"phi-2", {}, true},
    PreTokenizer{"pixtral", kThreeDigits, false, true, true},
    PreTokenizer{"qwen2", kOneDigit, false, false, false, true},
    PreTokenizer{"refact", kDigit, true},
    PreTokenizer{"smaug-bpe", kThreeDigits},
    PreTokenizer{"smollm", kDigit, true},
    PreTokenizer{"stablelm2", kOneDigit},
    PreTokenizer{"starcoder", kDigit, true},
    PreTokenizer{"tekken", kTekken, false, true, true},
};
static_assert(std::ranges::is_sorted(kPreTokenizers, {}, &PreTokenizer::name));

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  const auto* found = std::ranges::lower_bound(kPreTokenizers, name, {}, &PreTokenizer::name);
  return found != kPreTokenizers.end() && found->name == name ? found : nullptr;
}

std::span<const PreTokenizer> pre_tokenizers() { return kPreTokenizers; }

}  // namespace octavo
