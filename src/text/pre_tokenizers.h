// Rules that split texts into words before byte-level BPE, by their names in GGUF files.
#pragma once

#include <span>
#include <string_view>

namespace octavo {

struct PreTokenizer {
  std::string_view name;
  std::span<const std::string_view> splits;  // applied in this order; each match becomes a piece
  bool gpt2_words = false;                   // followed by GPT-2's expression
  // Properties of the models with this name:
  bool ignore_merges = false;  // a word that is a token stays whole
  bool add_bos = false;        // default, if the file does not say
  bool nfc = false;            // texts are normalised first
};

// Null if the name is unknown.
const PreTokenizer* find_pre_tokenizer(std::string_view name);

// All names, for errors.
std::span<const PreTokenizer> pre_tokenizers();

}  // namespace octavo
