#include "text/tokenizer.h"

#include <algorithm>

#include "text/bridge.h"
#include "text/plamo.h"
#include "text/tekken.h"
#include "text/tiktoken.h"
#include "text/utf8.h"

namespace octavo {
namespace {

// Tokenizer files of Mistral, PLaMo and Kimi, for folders without tokenizer.json.
struct OtherFile {
  const char* name;
  Result<Tokenizer> (*read)(std::string_view text, const TokenizerConfig& config);
};
constexpr OtherFile kOtherFiles[] = {{"tekken.json", tokenizer_of_tekken},
                                     {"tokenizer.jsonl", tokenizer_of_plamo},
                                     {"tiktoken.model", tokenizer_of_tiktoken}};

}  // namespace

void Tokenizer::Free::operator()(bridge::TokenizerHandle* handle) const {
  bridge::octavo_tokenizer_free(handle);
}

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& model_dir) {
  const auto has_file = [&](const char* file) {
    std::error_code ignored;
    return std::filesystem::exists(model_dir / file, ignored);
  };
  constexpr const char *kUsual = "tokenizer.json", *kRwkv = "rwkv_vocab_v20230424.txt";
  const bool usual = has_file(kUsual);
  const OtherFile* other = nullptr;
  for (const OtherFile& file : kOtherFiles)
    if (!usual && other == nullptr && has_file(file.name)) other = &file;
  if (!usual && other == nullptr && has_file(kRwkv))
    return field_failure("tokenizer", ErrorCode::unsupported,
                         "{} contains {}, which is not supported: add a tokenizer.json to the folder",
                         model_dir.string(), kRwkv);
  TRY(const std::string text, read_text_file(model_dir / (other != nullptr ? other->name : kUsual), kTokenizerFileBytesMax));
  TRY(TokenizerConfig config, read_tokenizer_config(model_dir));
  Result<Tokenizer> tokenizer = other != nullptr ? other->read(text, config) : parse(text, std::move(config));
  if (!tokenizer)
    tokenizer.error().message = fmt::format("{}: {}", model_dir.string(), tokenizer.error().message);
  return tokenizer;
}

Result<Tokenizer> Tokenizer::parse(std::string_view tokenizer_json, TokenizerConfig config) {
  apply_class(config, tokenizer_json);
  bridge::TokenizerHandle* handle = nullptr;
  bridge::Bytes out;
  const auto status =
      bridge::octavo_tokenizer_open(bridge::slice(tokenizer_json), bridge::slice(config.json), &handle, &out);
  Result<std::string> opened = bridge::take(status, out, "tokenizer");
  if (!opened && status == bridge::Status::invalid) opened.error().code = ErrorCode::corrupt;
  if (!opened) return std::unexpected(std::move(opened.error()));
  return Tokenizer(handle, std::move(config));
}

namespace {

Result<> check_text(std::string_view text, std::size_t bytes_max) {
  if (text.size() > bytes_max)
    return invalid("prompt", "the text has {} bytes, but the limit is {}", text.size(), bytes_max);
  if (const auto at = invalid_utf8_at(text)) return invalid("prompt", "invalid UTF-8 at byte {}", *at);
  return {};
}

std::vector<std::int32_t> ids_of(const std::string& bytes) {
  std::vector<std::int32_t> ids(bytes.size() / sizeof(std::int32_t));
  std::ranges::copy(bytes, reinterpret_cast<char*>(ids.data()));
  return ids;
}

}  // namespace

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text, bool add_special_tokens,
                                                    std::size_t bytes_max) const {
  TRY_VOID(check_text(text, bytes_max));
  bridge::Bytes out;
  const auto status =
      bridge::octavo_tokenizer_encode(handle_.get(), bridge::slice(text), add_special_tokens, &out);
  TRY(const std::string bytes, bridge::take(status, out, "prompt"));
  return ids_of(bytes);
}

Result<Tokenizer::Texts> Tokenizer::encode_texts(std::string_view first,
                                                 std::optional<std::string_view> second,
                                                 std::size_t most) const {
  TRY_VOID(check_text(first, kEncodeBytesMax));
  if (second) TRY_VOID(check_text(*second, kEncodeBytesMax));
  const bridge::Slice other = bridge::slice(second.value_or(""));
  bridge::Bytes out;
  std::int64_t begins = -1;
  const auto status = bridge::octavo_tokenizer_encode_texts(handle_.get(), bridge::slice(first),
                                                            second ? &other : nullptr, most, &begins, &out);
  TRY(const std::string bytes, bridge::take(status, out, "prompt"));
  return Texts{ids_of(bytes), begins < 0 ? std::nullopt : std::optional(static_cast<int>(begins))};
}

Result<std::vector<Tokenizer::Range>> Tokenizer::offsets(std::string_view text,
                                                         bool add_special_tokens) const {
  TRY_VOID(check_text(text, kEncodeBytesMax));
  bridge::Bytes out;
  const auto status =
      bridge::octavo_tokenizer_offsets(handle_.get(), bridge::slice(text), add_special_tokens, &out);
  TRY(const std::string bytes, bridge::take(status, out, "prompt"));
  const std::vector<std::int32_t> numbers = ids_of(bytes);
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < numbers.size(); i += 2) ranges.push_back({numbers[i], numbers[i + 1]});
  return ranges;
}

Result<std::string> Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  return decode(ids, skip_special_tokens, false);
}

Result<std::string> Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens,
                                      bool continues) const {
  const auto negative = std::ranges::find_if(ids, [](std::int32_t id) { return id < 0; });
  if (negative != ids.end()) {
    return invalid("tokens", "token id {} at index {} is negative", *negative, negative - ids.begin());
  }
  bridge::Bytes out;
  const auto* unsigned_ids = reinterpret_cast<const std::uint32_t*>(ids.data());
  const auto status = bridge::octavo_tokenizer_decode(handle_.get(), unsigned_ids, ids.size(),
                                                      skip_special_tokens, continues, &out);
  return bridge::take(status, out, "tokens");
}

std::int32_t Tokenizer::vocab_size() const {
  return static_cast<std::int32_t>(bridge::octavo_tokenizer_vocab_size(handle_.get()));
}

std::optional<std::string> Tokenizer::token(std::int32_t id) const {
  bridge::Bytes out;
  const auto status = bridge::octavo_tokenizer_token(handle_.get(), static_cast<std::uint32_t>(id), &out);
  Result<std::string> text = bridge::take(status, out, "tokens");
  return text ? std::optional(*std::move(text)) : std::nullopt;
}

std::optional<std::string> Tokenizer::token_bytes(std::int32_t id) const {
  bridge::Bytes out;
  const auto status =
      bridge::octavo_tokenizer_token_bytes(handle_.get(), static_cast<std::uint32_t>(id), &out);
  Result<std::string> bytes = bridge::take(status, out, "tokens");
  return bytes ? std::optional(*std::move(bytes)) : std::nullopt;
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const {
  const std::int64_t id = bridge::octavo_tokenizer_id(handle_.get(), bridge::slice(token));
  return id < 0 ? std::nullopt : std::optional(static_cast<std::int32_t>(id));
}

bool Tokenizer::is_special(std::int32_t id) const {
  return bridge::octavo_tokenizer_is_special(handle_.get(), static_cast<std::uint32_t>(id));
}

bridge::Grouping Tokenizer::grouping() const { return bridge::octavo_tokenizer_grouping(handle_.get()); }

bool Tokenizer::is_byte(std::int32_t id) const {
  return bridge::octavo_tokenizer_is_byte(handle_.get(), static_cast<std::uint32_t>(id));
}

}  // namespace octavo
