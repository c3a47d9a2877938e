// How texts are split into words before byte-level BPE, by the names that GGUF files have for it.
#pragma once

#include <span>
#include <string_view>

namespace octavo {

struct PreTokenizer {
  std::string_view name;
  std::span<const std::string_view> splits;  // what each of them matches becomes a piece, in this order
  bool gpt2_words = false;                   // then GPT-2's own expression
  // Properties of the models with this name:
  bool ignore_merges = false;  // a word that is a token stays whole
  bool add_bos = false;        // unless the file says otherwise
  bool nfc = false;            // texts are normalised first
};

// Null if the name is unknown.
const PreTokenizer* find_pre_tokenizer(std::string_view name);

// All names, for errors.
std::span<const PreTokenizer> pre_tokenizers();

}  // namespace octavo
