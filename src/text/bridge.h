// C interface of the Rust crate in bridge/ (tokenizers, minijinja), and helpers that convert its return
// values to Result. Only source files in this folder include it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::bridge {

extern "C" {

enum class Status : int { ok = 0, invalid = 1, internal = 2 };
enum class Grouping : int { token = 0, bytes = 1, byte_runs = 2, whole = 3 };

struct Slice {
  const char* data;
  std::size_t size;
};

struct Bytes {
  std::uint8_t* data;
  std::size_t size;
  std::size_t capacity;
};

struct TokenizerHandle;
struct TemplateHandle;

struct TemplateLimits {
  std::size_t source_bytes;
  std::size_t output_bytes;
  std::size_t depth;
  std::uint64_t fuel;
  std::uint64_t built_bytes;
  std::uint64_t fuel_per_input_byte;
  std::uint64_t built_bytes_per_input_byte;
};

struct RenderInput {
  Slice messages;
  Slice tools;
  Slice documents;
  Slice kwargs;
  bool add_generation_prompt;
  bool continue_final_message;
  std::int64_t now;
};

void octavo_bytes_free(Bytes bytes);

Status octavo_tokenizer_open(Slice json, Slice config, TokenizerHandle** handle, Bytes* out);
void octavo_tokenizer_free(TokenizerHandle* handle);
Status octavo_tokenizer_encode(const TokenizerHandle* handle, Slice text, bool add_special_tokens,
                               Bytes* out);
Status octavo_tokenizer_encode_texts(const TokenizerHandle* handle, Slice first, const Slice* second,
                                     std::size_t most, std::int64_t* second_begins, Bytes* out);
Status octavo_tokenizer_offsets(const TokenizerHandle* handle, Slice text, bool add_special_tokens,
                                Bytes* out);
Status octavo_tokenizer_decode(const TokenizerHandle* handle, const std::uint32_t* ids, std::size_t count,
                               bool skip_special_tokens, bool continues, Bytes* out);
std::uint32_t octavo_tokenizer_vocab_size(const TokenizerHandle* handle);
Status octavo_tokenizer_token(const TokenizerHandle* handle, std::uint32_t id, Bytes* out);
Status octavo_tokenizer_token_bytes(const TokenizerHandle* handle, std::uint32_t id, Bytes* out);
std::int64_t octavo_tokenizer_id(const TokenizerHandle* handle, Slice token);
bool octavo_tokenizer_is_special(const TokenizerHandle* handle, std::uint32_t id);
bool octavo_tokenizer_is_byte(const TokenizerHandle* handle, std::uint32_t id);
Grouping octavo_tokenizer_grouping(const TokenizerHandle* handle);

Status octavo_template_open(Slice source, Slice special_tokens, TemplateLimits limits,
                            TemplateHandle** handle, Bytes* out);
void octavo_template_free(TemplateHandle* handle);
Status octavo_template_render(const TemplateHandle* handle, const RenderInput* input, Bytes* out);

}  // extern "C"

inline Slice slice(std::string_view text) { return {text.data(), text.size()}; }

// Takes ownership of `bytes`. Returns the bytes or, if `status` is an error, an Error on `field` with the
// bytes as its message.
Result<std::string> take(Status status, Bytes bytes, std::string_view field);

}  // namespace octavo::bridge
