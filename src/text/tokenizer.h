// Converts text to token ids and back with a Hugging Face tokenizer.json: byte-level BPE, SentencePiece BPE
// and unigram, WordPiece. It uses the Hugging Face `tokenizers` library, so ids equal those in Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/tokenizer_config.h"

namespace octavo {

namespace bridge {
struct TokenizerHandle;
enum class Grouping : int;
}  // namespace bridge

inline constexpr std::size_t kTokenizerFileBytesMax = 256u << 20;
inline constexpr std::size_t kEncodeBytesMax = 16u << 20;

// Immutable. Several threads may use a tokenizer at the same time.
class Tokenizer {
 public:
  // Reads tokenizer.json and the files of read_tokenizer_config(). Returns not_found, io, or corrupt if the
  // files contradict each other.
  static Result<Tokenizer> load(const std::filesystem::path& model_dir);

  // Like load(), but from text. config: may be empty.
  static Result<Tokenizer> parse(std::string_view tokenizer_json, TokenizerConfig config = {});

  // Returns the ids of a text. Special tokens in the text ("<|eot|>") become their ids. add_special_tokens:
  // adds the special tokens that the model expects around a text, such as BOS. Returns invalid_argument on
  // "prompt" if the text is longer than bytes_max or not UTF-8 (with the index of the byte).
  Result<std::vector<std::int32_t>> encode(std::string_view text, bool add_special_tokens,
                                           std::size_t bytes_max = kEncodeBytesMax) const;

  // Encodes one or two texts for a pooling model, with special tokens around them. Truncates to `most`
  // tokens as `tokenizers` does: it shortens the longer text and keeps the special tokens. Returns the
  // errors of encode().
  struct Texts {
    std::vector<std::int32_t> ids;
    std::optional<int> second;  // index of the first token with token type 1; nullopt: no token has type 1
  };
  Result<Texts> encode_texts(std::string_view first, std::optional<std::string_view> second,
                             std::size_t most = kEncodeBytesMax) const;

  // Returns for each token of encode() the range of characters [begin, end) of the text that it comes from.
  // An added special token has the range [0, 0). Returns the errors of encode(), and an error for a tokenizer
  // that does not know these ranges.
  struct Range {
    std::int32_t begin = 0, end = 0;
  };
  Result<std::vector<Range>> offsets(std::string_view text, bool add_special_tokens) const;

  // Invalid UTF-8 becomes U+FFFD. Unknown ids are skipped as in transformers, because models have more
  // logits than tokens. Returns invalid_argument for a negative id.
  Result<std::string> decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const;

  // Returns the highest id plus 1, including added tokens.
  std::int32_t vocab_size() const;

  // Returns the token as the vocabulary writes it ("Ġthe", "▁the", "<0x0A>"), or nullopt for an unknown id.
  std::optional<std::string> token(std::int32_t id) const;

  // Returns the bytes that the token adds in the middle of a text (" the", "\n"). They may be incomplete
  // UTF-8. Returns nullopt for an unknown id.
  std::optional<std::string> token_bytes(std::int32_t id) const;

  // token: as the vocabulary writes it.
  std::optional<std::int32_t> id_of(std::string_view token) const;

  // Returns true if skip_special_tokens omits the token.
  bool is_special(std::int32_t id) const;

  const TokenizerConfig& config() const { return config_; }

 private:
  friend class Detokenizer;
  struct Free {
    void operator()(bridge::TokenizerHandle* handle) const;
  };

  Tokenizer(bridge::TokenizerHandle* handle, TokenizerConfig config)
      : handle_(handle), config_(std::move(config)) {}

  Result<std::string> decode(std::span<const std::int32_t> ids, bool skip_special_tokens,
                             bool continues) const;
  bridge::Grouping grouping() const;
  bool is_byte(std::int32_t id) const;

  std::unique_ptr<bridge::TokenizerHandle, Free> handle_;
  TokenizerConfig config_;
};

}  // namespace octavo
