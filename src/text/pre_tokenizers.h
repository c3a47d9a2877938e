// Regular expressions that split a text into words before byte-level BPE. GGUF files name them.
#pragma once

#include <span>
#include <string_view>

namespace octavo {

struct PreTokenizer {
  std::string_view name;
  // applied in this order; each match becomes a piece
  std::span<const std::string_view> splits;
  // whether GPT-2's expression is applied after `splits`
  bool gpt2_words = false;
  // whether a word that is a token stays one token
  bool ignore_merges = false;
  bool add_bos = false;  // value for files without tokenizer.ggml.add_bos_token
  bool nfc = false;      // whether texts are first normalized to NFC
};

// Returns null for an unknown name.
const PreTokenizer* find_pre_tokenizer(std::string_view name);

// Error messages list the names.
std::span<const PreTokenizer> pre_tokenizers();

}  // namespace octavo
