// Converts token ids to text during generation.
//
//   Detokenizer detokenizer(tokenizer, skip_special_tokens, prompt);
//   for each new id: send(detokenizer.push(id));
//   send(detokenizer.finish());
//
// The joined pieces equal Tokenizer::decode of all ids; with a prompt, the text that they add to its decoded
// text. No piece ends inside a code point.
//
// Like vLLM and Hugging Face's DecodeStream, it decodes a small window and emits the new text. The decoder
// determines the window, not U+FFFD at its end:
// - byte-level BPE: keeps bytes only while they begin a code point that the next token may complete (at most
//   3);
// - byte fallback: keeps a run of byte tokens until it ends, because one invalid byte turns all of them to
//   U+FFFD;
// - Metaspace and WordPiece: decodes each token alone, as the first or as a middle one;
// - decoders that are not for language models, such as CTC: finish() returns all text.
// So each token is decoded once or twice: constant time per token.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace octavo {

class Detokenizer {
 public:
  // Keeps references to the tokenizer and to kept_special, special tokens that are not skipped.
  // `prompt_tail`: the text's tokens before the new ids, all or at least the last few that are not special.
  // It decides whether the first word keeps its leading space, and whether a new byte completes a character
  // of the prompt.
  Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens,
              std::span<const std::int32_t> prompt_tail = {},
              std::span<const std::int32_t> kept_special = {});

  // Takes one more id; returns the text that is now certain, often one token's, sometimes none or several
  // tokens'.
  std::string push(std::int32_t id);

  // There will be no more ids: returns the rest, with U+FFFD for a code point that stayed incomplete.
  std::string finish();

 private:
  bool skips(std::int32_t id) const;
  std::string push_bytes(std::int32_t id);
  std::string push_group(std::int32_t id);
  std::string decode_group();

  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  std::span<const std::int32_t> kept_special_;
  bool at_start_ = true;             // no text yet: the next is decoded as the beginning of a text
  std::string bytes_;                // byte-level: the incomplete code point
  std::vector<std::int32_t> group_;  // otherwise: ids to be decoded together
};

}  // namespace octavo
