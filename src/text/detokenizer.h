// Converts token ids to text during generation.
//
//   Detokenizer detokenizer(tokenizer, skip_special_tokens, prompt);
//   for each new id: send(detokenizer.push(id));
//   send(detokenizer.finish());
//
// The pieces together equal Tokenizer::decode of all ids. With a prompt, they equal the text that the ids add
// to the decoded prompt. No piece ends inside a code point.
//
// As in vLLM and Hugging Face's DecodeStream, a small window of tokens is decoded and the new text is
// returned. The type of the tokenizer's decoder determines the window:
// - Byte-level BPE: keeps at most 3 bytes, and only while they begin a code point that the next token may
//   complete.
// - Byte fallback: keeps a run of byte tokens until it ends, because one invalid byte turns all of them to
//   U+FFFD.
// - Metaspace and WordPiece: decodes each token alone, either as the first one or as a later one.
// - Decoders for other models, such as CTC: finish() returns all text.
// So each token is decoded once or twice, in constant time.
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
  // prompt_tail: the last tokens of the prompt, enough to contain a few that are not special. They decide
  // whether the first word keeps its leading space, and whether a new byte completes a character of the
  // prompt.
  Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens,
              std::span<const std::int32_t> prompt_tail = {},
              std::span<const std::int32_t> kept_special = {});

  // Adds an id. Returns the text that cannot change any more: usually that of one token, sometimes that of no
  // token or of several.
  std::string push(std::int32_t id);

  // Call this after the last id. Returns the remaining text, with U+FFFD for an incomplete code point.
  std::string finish();

 private:
  bool skips(std::int32_t id) const;
  std::string push_bytes(std::int32_t id);
  std::string push_group(std::int32_t id);
  std::string decode_group();

  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  std::span<const std::int32_t> kept_special_;
  bool at_start_ = true;  // whether no text was returned yet, so that the next token is decoded as the
                          // beginning of a text
  std::string bytes_;                // byte-level: the incomplete code point
  std::vector<std::int32_t> group_;  // other decoders: ids that are decoded together
};

}  // namespace octavo
