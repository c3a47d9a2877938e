// Rules that split a text into words before byte-level BPE. GGUF files refer to them by name.
#pragma once

#include <span>
#include <string_view>

namespace octavo {

struct PreTokenizer {
  std::string_view name;
  std::span<const std::string_view> splits;  // expressions, applied in this order; each match becomes a piece
  bool gpt2_words = false;                   // GPT-2's expression is applied last
  // Properties of all models with this pre-tokenizer:
  bool ignore_merges = false;  // whether a word that is a token is not split
  bool add_bos = false;        // default for files without tokenizer.ggml.add_bos_token
  bool nfc = false;            // texts are normalised to NFC first
};

// Null if the name is unknown.
const PreTokenizer* find_pre_tokenizer(std::string_view name);

// All rules; error messages list their names.
std::span<const PreTokenizer> pre_tokenizers();

}  // namespace octavo
