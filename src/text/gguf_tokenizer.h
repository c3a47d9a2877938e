// Converts the tokenizer of a GGUF file to the form of tokenizer.json. The file has a list of tokens, with
// merges (byte-level BPE), scores (SentencePiece's BPE and unigrams) or neither (WordPiece).
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

// Ids of special tokens; nullopt: there is no such token.
struct SpecialIds {
  std::optional<std::int64_t> bos = {}, eos = {}, unknown = {}, padding = {};
  std::optional<std::int64_t> classifier = {}, separator = {};  // bert: tokens around a text; nullopt: [CLS]
                                                                // and [SEP]
};

// Metadata whose keys begin with tokenizer.ggml, and tokenizer.chat_template.
struct GgufVocabulary {
  // "gpt2": byte-level BPE; "llama": SentencePiece; "t5": SentencePiece's unigrams; "bert": WordPiece;
  // "plamo2" and "plamo3": PLaMo's unigrams.
  std::string_view model;
  std::string_view pre;  // gpt2: name of the pre-tokenizer that splits the text into words; "": "default"
  std::vector<std::string_view> tokens = {};
  std::vector<double> types = {};             // token types; empty: all tokens are ordinary
  std::vector<std::string_view> merges = {};  // gpt2: "first second"; merges earlier in the list come first
  // Scores of the tokens. llama: the merge with the highest score comes first. t5, plamo: a text becomes the
  // tokens with the highest total score.
  std::vector<double> scores = {};
  SpecialIds special = {};
  std::optional<bool> lowercase = {}, strip_accents = {};       // bert; nullopt: true for lowercase, and
                                                                // lowercase's value for strip_accents
  std::optional<bool> add_bos = {}, add_eos = {}, add_space_prefix = {};
  std::optional<bool> add_separator =
      {};  // t5: adds a separator between the texts of a pair; nullopt: only if texts have a begin token
  std::optional<bool> single_spaces = {};  // t5: replaces runs of blanks by one and removes blanks at the
                                           // ends; nullopt: false
  // plamo3: a run of one character (`repeats`) or of blanks (`blanks`) is split off from this length on;
  // nullopt: never. GGUF files do not contain these values.
  std::optional<std::int64_t> repeats = 4, blanks = 2;
  std::string charsmap = {};  // t5: SentencePiece's compiled normalisation rules, as bytes; "": none
  std::vector<NamedTemplate> chat_templates = {};
};

// The ids equal those of the tokenizer that the file was made from, if its type is known. Errors:
// unsupported, with a list of the supported types; corrupt, with the key's name.
Result<Tokenizer> tokenizer_of(const GgufVocabulary& vocabulary);

}  // namespace octavo
