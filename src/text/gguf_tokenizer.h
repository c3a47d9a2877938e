// The tokenizer that a GGUF file describes: a list of tokens, with merges (byte-level BPE) or scores
// (SentencePiece's two kinds) or neither (WordPiece), put into the words of tokenizer.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"

namespace octavo {

// The metadata under tokenizer.ggml, and tokenizer.chat_template.
struct GgufVocabulary {
  // "gpt2": byte-level BPE; "llama": SentencePiece; "t5": SentencePiece's unigrams; "bert": WordPiece; "plamo2" and
  // "plamo3": PLaMo's unigrams.
  std::string_view model;
  std::string_view pre;  // gpt2: name of the pre-tokenizer that splits the text into words; "": "default"
  std::vector<std::string_view> tokens = {};
  std::vector<double> types = {};             // types of the tokens; empty: all are ordinary
  std::vector<std::string_view> merges = {};  // gpt2: "first second", the most urgent first
  // Scores of the tokens. llama: the highest is merged first; t5, plamo: a text gets the tokens with the
  // highest sum.
  std::vector<double> scores = {};
  std::optional<std::int64_t> bos = {}, eos = {}, unknown = {}, padding = {};
  std::optional<std::int64_t> classifier = {}, separator = {};  // bert: around texts; nothing: [CLS] and [SEP]
  std::optional<bool> lowercase = {}, strip_accents = {};       // bert; nothing: true, and as lowercase
  std::optional<bool> add_bos = {}, add_eos = {}, add_space_prefix = {};
  std::optional<bool> add_separator =
      {};  // t5: of pairs, between the texts; nothing: where texts have a begin
  std::optional<bool> single_spaces =
      {};                     // t5: runs of blanks are one, and none is at the ends; nothing: they stay
  // plamo3: the length from which runs of one character, and of blanks, are cut separately; nullopt: never.
  // GGUF files do not contain it.
  std::optional<std::int64_t> repeats = 4, blanks = 2;
  std::string charsmap = {};  // t5: SentencePiece's compiled normalization, as bytes; "": none
  std::vector<NamedTemplate> chat_templates = {};
};

// Ids are those of the tokenizer that the file was made from, as far as its kind is known. Errors:
// unsupported, listing the kinds; corrupt, naming the key.
Result<Tokenizer> tokenizer_of(const GgufVocabulary& vocabulary);

}  // namespace octavo
