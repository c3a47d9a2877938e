// Token ids to text while they are being generated.
//
//   Detokenizer detokenizer(tokenizer, skip_special_tokens, prompt);
//   for each new id: send(detokenizer.push(id));
//   send(detokenizer.finish());
//
// Promise: the pieces joined are Tokenizer::decode of all the ids, for any ids; with a prompt, what they add
// to its decoded text. No piece ends inside a code point.
//
// The method is that of vLLM and Hugging Face's DecodeStream, to decode a small window and emit what is new,
// with the window chosen by what the decoder needs rather than by looking for U+FFFD at its end:
//  - byte-level BPE: bytes are kept only while they begin a code point that the next token may complete (at
//  most 3);
//  - byte fallback: a run of byte tokens is kept until it ends, because one bad byte in it turns all of them
//  to U+FFFD;
//  - Metaspace and WordPiece: the token alone, decoded as the first one or as one in the middle;
//  - decoders of no language model (CTC and the like): all text comes with finish().
// So each token is decoded once or twice: constant time per token, whatever the ids.
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
  // `prompt_tail`: the end of what stands before the new ids, all of it or at least the last few tokens that
  // are not special; it settles whether the first word keeps its leading space, and whether a new byte
  // completes a character of the prompt.
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
