#include "text/tekken.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <string>
#include <vector>

#include "base/base64.h"
#include "text/byte_tokens.h"
#include "text/gguf_tokenizer.h"
#include "text/pre_tokenizers.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::int64_t kTokensMax = 1 << 22;
constexpr double kNormal = 1, kControl = 3;  // values of GgufVocabulary::types
constexpr std::size_t kBytes = 256;          // the first tokens after the special ones are single bytes

// Special tokens for files that do not list them.
constexpr std::array<std::string_view, 20> kSpecial = {"<unk>",
                                                       "<s>",
                                                       "</s>",
                                                       "[INST]",
                                                       "[/INST]",
                                                       "[AVAILABLE_TOOLS]",
                                                       "[/AVAILABLE_TOOLS]",
                                                       "[TOOL_RESULTS]",
                                                       "[/TOOL_RESULTS]",
                                                       "[TOOL_CALLS]",
                                                       "[IMG]",
                                                       "<pad>",
                                                       "[IMG_BREAK]",
                                                       "[IMG_END]",
                                                       "[PREFIX]",
                                                       "[MIDDLE]",
                                                       "[SUFFIX]",
                                                       "[SYSTEM_PROMPT]",
                                                       "[/SYSTEM_PROMPT]",
                                                       "[TOOL_CONTENT]"};

std::unexpected<Error> wrong(std::string_view what) {
  return failure(ErrorCode::corrupt, "tekken.json: {}", what);
}

Result<std::size_t> size_of(const json::object& config, std::string_view field) {
  const json::value* value = config.if_contains(field);
  const std::int64_t* count = value != nullptr ? value->if_int64() : nullptr;
  if (count == nullptr || *count < 1 || *count > kTokensMax)
    return failure(ErrorCode::corrupt, "tekken.json: config.{} must be a whole number of 1 to {}", field,
                   kTokensMax);
  return static_cast<std::size_t>(*count);
}

std::string_view text_of(const json::value& item, std::string_view field) {
  const json::object* object = item.if_object();
  const json::value* value = object != nullptr ? object->if_contains(field) : nullptr;
  const json::string* text = value != nullptr ? value->if_string() : nullptr;
  return text != nullptr ? std::string_view(*text) : std::string_view();
}

// Special tokens by rank. Unnamed ones get a name with their number.
Result<std::vector<std::string>> special_tokens(const json::object& file, std::size_t count) {
  std::vector<std::string> tokens;
  const json::value* given = file.if_contains("special_tokens");
  if (given == nullptr || given->is_null()) {
    tokens.assign(kSpecial.begin(), kSpecial.end());
  } else if (given->is_array()) {
    for (const json::value& item : given->get_array()) tokens.emplace_back(text_of(item, "token_str"));
  } else {
    return wrong("special_tokens must be a list");
  }
  if (tokens.size() > count)
    return wrong("special_tokens has more entries than config.default_num_special_tokens");
  if (std::ranges::find(tokens, "") != tokens.end())
    return wrong("special_tokens: each entry must have a token_str");
  while (tokens.size() < count) tokens.push_back(fmt::format("<SPECIAL_{}>", tokens.size()));
  return tokens;
}

// Returns the bytes of each token by rank.
Result<std::vector<std::string>> byte_tokens(const json::object& file, std::size_t count) {
  const json::value* vocab = file.if_contains("vocab");
  if (vocab == nullptr || !vocab->is_array()) return wrong("vocab must be a list");
  const json::array& items = vocab->get_array();
  if (count < kBytes || items.size() < count)
    return failure(ErrorCode::corrupt, "tekken.json: vocab has {} tokens, but must have {} and at least {}",
                   items.size(), count, kBytes);
  std::vector<std::string> tokens;
  for (std::size_t rank = 0; rank < count; ++rank) {
    auto bytes = decode_base64(text_of(items[rank], "token_bytes"));
    if (!bytes || bytes->empty() || (rank < kBytes && *bytes != std::string(1, static_cast<char>(rank))))
      return failure(ErrorCode::corrupt,
                     "tekken.json: vocab[{}].token_bytes is wrong: the first {} tokens must be single bytes",
                     rank, kBytes);
    tokens.push_back(*std::move(bytes));
  }
  return tokens;
}

}  // namespace

Result<Tokenizer> tokenizer_of_tekken(std::string_view text, const TokenizerConfig& config) {
  boost::system::error_code bad;
  const json::value tree = json::parse(json::string_view(text.data(), text.size()), bad);
  const json::object* file = bad ? nullptr : tree.if_object();
  if (file == nullptr) return wrong("not a JSON object");
  const json::value* nested = file->if_contains("config");
  if (nested == nullptr || !nested->is_object()) return wrong("config must be an object");
  const json::object& settings = nested->get_object();
  constexpr std::string_view kWords = "tekken";
  if (text_of(*nested, "pattern") != find_pre_tokenizer(kWords)->splits.front())
    return failure(ErrorCode::unsupported, "tekken.json: config.pattern is not supported");
  TRY(const std::size_t size, size_of(settings, "default_vocab_size"));
  TRY(const std::size_t specials, size_of(settings, "default_num_special_tokens"));
  if (specials >= size) return wrong("config.default_num_special_tokens must be below default_vocab_size");
  TRY(const std::vector<std::string> special, special_tokens(*file, specials));
  TRY(const std::vector<std::string> bytes, byte_tokens(*file, size - specials));
  const std::vector<std::string> merges = merges_of(bytes);

  std::vector<std::string> tokens = special;
  for (const std::string& token : bytes) tokens.push_back(written(token));
  GgufVocabulary vocabulary{.model = "gpt2", .pre = kWords};
  vocabulary.tokens.assign(tokens.begin(), tokens.end());
  vocabulary.types.assign(specials, kControl);
  vocabulary.types.resize(size, kNormal);
  vocabulary.merges.assign(merges.begin(), merges.end());
  const auto id = [&](std::string_view token) -> std::optional<std::int64_t> {
    const auto found = std::ranges::find(special, token);
    if (found == special.end()) return std::nullopt;
    return found - special.begin();
  };
  vocabulary.special.bos = id("<s>");
  vocabulary.special.eos = id("</s>");
  vocabulary.special.unknown = id("<unk>");
  vocabulary.special.padding = id("<pad>");
  vocabulary.chat_templates = config.chat_templates;
  return tokenizer_of(vocabulary);
}

}  // namespace octavo
