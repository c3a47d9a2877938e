// Converts text to token ids and back, with the tokenizer.json of a Hugging Face model: byte-level BPE,
// SentencePiece-style BPE and unigram, WordPiece. Uses the Hugging Face `tokenizers` library, so ids equal
// those in Python.
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

// Immutable once loaded. Several threads may use one tokenizer at the same time.
class Tokenizer {
 public:
  // Reads tokenizer.json and the files of read_tokenizer_config from a model directory.
  // Errors: not_found, io, corrupt (the files contradict themselves or each other).
  static Result<Tokenizer> load(const std::filesystem::path& model_dir);

  // Like load(), from the texts of the files. config: read from tokenizer_config.json; may be empty.
  static Result<Tokenizer> parse(std::string_view tokenizer_json, TokenizerConfig config = {});

  // Returns the ids of a text. Special tokens written in it ("<|eot|>") become their ids. add_special_tokens:
  // adds the special tokens that the model expects around a single text, such as BOS. Errors:
  // invalid_argument on field "prompt" if the text is not UTF-8 (with the byte's index) or longer than
  // bytes_max.
  Result<std::vector<std::int32_t>> encode(std::string_view text, bool add_special_tokens,
                                           std::size_t bytes_max = kEncodeBytesMax) const;

  // Tokenises one or two texts for a pooling model. It adds special tokens around them, and truncates to
  // `most` tokens as `tokenizers` does: the end of the longer text is removed first, and special tokens
  // remain. Returns the errors of encode().
  struct Texts {
    std::vector<std::int32_t> ids;
    std::optional<int> second;  // index of the first token of type 1; nullopt: no such token
  };
  Result<Texts> encode_texts(std::string_view first, std::optional<std::string_view> second,
                             std::size_t most = kEncodeBytesMax) const;

  // Returns the text of ids. Invalid UTF-8 becomes U+FFFD. Ids without a token are skipped, as in
  // transformers (models have more logits than tokens). Errors: invalid_argument if an id is negative.
  Result<std::string> decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const;

  // Highest id + 1, including added tokens.
  std::int32_t vocab_size() const;

  // The token as the vocabulary writes it ("Ġthe", "▁the", "<0x0A>"); nullopt: no such id.
  std::optional<std::string> token(std::int32_t id) const;

  // Returns the bytes that the token adds in the middle of a text (" the", "\n"), possibly incomplete UTF-8;
  // nullopt if the id does not exist.
  std::optional<std::string> token_bytes(std::int32_t id) const;

  // Returns the id of a token that is written as in the vocabulary.
  std::optional<std::int32_t> id_of(std::string_view token) const;

  // Returns whether skip_special_tokens omits the token.
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
