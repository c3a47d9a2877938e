#include "text/tiktoken.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "base/base64.h"
#include "text/byte_tokens.h"
#include "text/gguf_tokenizer.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::size_t kTokensMax = 1 << 22, kSpecial = 256;
constexpr double kNormal = 1, kControl = 3;  // values of GgufVocabulary::types
constexpr std::string_view kClass = "TikTokenTokenizer";

// Returns the bytes of each token by rank.
Result<std::vector<std::string>> byte_tokens(std::string_view text) {
  std::vector<std::string> tokens;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t blank = line.find(' ');
    const std::string_view number = blank < line.size() ? line.substr(blank + 1) : std::string_view();
    auto bytes = decode_base64(line.substr(0, blank));
    std::size_t rank = 0;
    const auto [end, wrong] = std::from_chars(number.data(), number.data() + number.size(), rank);
    if (wrong != std::errc() || end != number.data() + number.size() || rank != tokens.size() || !bytes ||
        bytes->empty() || rank >= kTokensMax)
      return failure(
          ErrorCode::corrupt,
          "tiktoken.model: line {} must be a token in base64 and the token's rank, {}, which is below {}",
          tokens.size() + 1, tokens.size(), kTokensMax);
    tokens.push_back(*std::move(bytes));
  }
  if (tokens.empty()) return failure(ErrorCode::corrupt, "tiktoken.model: the file has no tokens");
  return tokens;
}

// Returns the named and the reserved special tokens, whose ids begin at `first`.
std::vector<std::string> special_tokens(const json::object& config, std::size_t first) {
  std::vector<std::string> tokens;
  const json::value* added = config.if_contains("added_tokens_decoder");
  const json::object* names = added != nullptr ? added->if_object() : nullptr;
  for (std::size_t id = first; id < first + kSpecial; ++id) {
    const json::value* token = names != nullptr ? names->if_contains(std::to_string(id)) : nullptr;
    const json::object* fields = token != nullptr ? token->if_object() : nullptr;
    const json::value* content = fields != nullptr ? fields->if_contains("content") : nullptr;
    if (content != nullptr && content->is_string())
      tokens.emplace_back(content->get_string());
    else
      tokens.push_back(fmt::format("<|reserved_token_{}|>", id));
  }
  return tokens;
}

}  // namespace

Result<Tokenizer> tokenizer_of_tiktoken(std::string_view text, const TokenizerConfig& config) {
  boost::system::error_code bad;
  const json::value tree = json::parse(config.json, bad);
  const json::object* file = bad ? nullptr : tree.if_object();
  const json::value* kind = file != nullptr ? file->if_contains("tokenizer_class") : nullptr;
  if (kind == nullptr || *kind != json::value(json::string_view(kClass.data(), kClass.size())))
    return field_failure("tokenizer", ErrorCode::unsupported,
                         "tiktoken.model is only supported if tokenizer_config.json has the tokenizer_class "
                         "{}; otherwise add a tokenizer.json",
                         kClass);
  TRY(const std::vector<std::string> bytes, byte_tokens(text));
  const std::vector<std::string> special = special_tokens(*file, bytes.size());
  const std::vector<std::string> merges = merges_of(bytes);

  std::vector<std::string> tokens;
  for (const std::string& token : bytes) tokens.push_back(written(token));
  tokens.insert(tokens.end(), special.begin(), special.end());
  GgufVocabulary vocabulary{.model = "gpt2", .pre = "kimi-k2"};
  vocabulary.tokens.assign(tokens.begin(), tokens.end());
  vocabulary.types.assign(bytes.size(), kNormal);
  vocabulary.types.resize(tokens.size(), kControl);
  vocabulary.merges.assign(merges.begin(), merges.end());
  const auto id = [&](std::string_view part) -> std::optional<std::int64_t> {
    const auto found = std::ranges::find(special, config.special_token(part));
    if (found == special.end()) return std::nullopt;
    return static_cast<std::int64_t>(bytes.size()) + (found - special.begin());
  };
  vocabulary.special.bos = id("bos_token");
  vocabulary.special.eos = id("eos_token");
  vocabulary.special.unknown = id("unk_token");
  vocabulary.special.padding = id("pad_token");
  vocabulary.add_bos = false;
  vocabulary.chat_templates = config.chat_templates;
  return tokenizer_of(vocabulary);
}

}  // namespace octavo
