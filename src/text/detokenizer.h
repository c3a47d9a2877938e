// Converts output tokens to text during generation.
//
//   Detokenizer detokenizer(tokenizer, skip_special_tokens, prompt);
//   for each new id: send(detokenizer.push(id));
//   send(detokenizer.finish());
//
// All pieces together equal Tokenizer::decode of all ids. After a prompt, they equal the text that the ids
// add to the decoded prompt. No piece ends inside a code point.
//
// As in vLLM and Hugging Face's DecodeStream, only a few tokens are decoded at a time. How many depends on
// the tokenizer's decoder:
// * Byte-level BPE: at most 3 bytes are held back, while the next token may complete their code point.
// * Byte fallback: a run of byte tokens is held back until it ends, because one invalid byte makes all of
// them U+FFFD.
// * Metaspace and WordPiece: each token is decoded alone. The first token may lose its leading space.
// * Other decoders, such as CTC: finish() returns all text.
// Each token is decoded once or twice, in constant time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace octavo {

class Detokenizer {
 public:
  // Keeps references to `tokenizer` and to `kept_special`, the special tokens that are not skipped.
  // prompt_tail: the last tokens of the prompt, including a few that are not special. They decide whether
  // the first word has a leading space, and whether a byte completes a character of the prompt.
  Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens,
              std::span<const std::int32_t> prompt_tail = {},
              std::span<const std::int32_t> kept_special = {});

  // Returns the text that later tokens cannot change. It is usually the text of one token, but may be empty
  // or longer.
  std::string push(std::int32_t id);

  // Call it after the last id. Returns the remaining text. An incomplete code point becomes U+FFFD.
  std::string finish();

 private:
  bool skips(std::int32_t id) const;
  std::string push_bytes(std::int32_t id);
  std::string push_group(std::int32_t id);
  std::string decode_group();

  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  std::span<const std::int32_t> kept_special_;
  // no text was returned yet, so the next token is decoded as the start of a text
  bool at_start_ = true;
  std::string bytes_;                // byte-level: bytes of an incomplete code point
  std::vector<std::int32_t> group_;  // other decoders: ids that must be decoded together
};

}  // namespace octavo
