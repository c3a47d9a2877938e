// Makes a tokenizer from the metadata of a GGUF file, by conversion to tokenizer.json. The file has a list
// of tokens, and merges (byte-level BPE), scores (SentencePiece's BPE and unigrams) or neither (WordPiece).
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

// Ids of special tokens; nullopt: the model has no such token.
struct SpecialIds {
  std::optional<std::int64_t> bos = {}, eos = {}, unknown = {}, padding = {};
  // bert: tokens before and after a text; nullopt: [CLS] and [SEP]
  std::optional<std::int64_t> classifier = {}, separator = {};
};

// Values of the keys tokenizer.ggml.* and tokenizer.chat_template.
struct GgufVocabulary {
  // "gpt2": byte-level BPE; "llama": SentencePiece; "t5": SentencePiece's unigrams; "bert": WordPiece;
  // "plamo2" and "plamo3": PLaMo's unigrams.
  std::string_view model;
  // gpt2: name of the pre-tokenizer, which splits texts into words; "": "default"
  std::string_view pre;
  std::vector<std::string_view> tokens = {};
  std::vector<double> types = {};  // empty: all tokens are normal
  // gpt2: each merge as "first second", in the order in which merges are applied
  std::vector<std::string_view> merges = {};
  // Score of each token. llama: merges to the token with the highest score come first. t5, plamo: a text is
  // split so that the sum of scores is the highest.
  std::vector<double> scores = {};
  SpecialIds special = {};
  // bert; if nullopt, lowercase is true and strip_accents equals lowercase
  std::optional<bool> lowercase = {}, strip_accents = {};
  std::optional<bool> add_bos = {}, add_eos = {}, add_space_prefix = {};
  std::optional<bool> add_separator =
      {};  // t5: adds a separator between the texts of a pair; nullopt: only if texts have a begin token
  // t5: replaces runs of blanks by one blank and removes those at both ends; nullopt: false
  std::optional<bool> single_spaces = {};
  // plamo3: minimum length at which a run of one character (`repeats`) or of blanks (`blanks`) is split
  // off; nullopt: never. GGUF files lack these values.
  std::optional<std::int64_t> repeats = 4, blanks = 2;
  // t5: SentencePiece's compiled normalization rules; "": no rules
  std::string charsmap = {};
  std::vector<NamedTemplate> chat_templates = {};
};

// Ids equal those of the original tokenizer. Returns unsupported for an unknown `model` or `pre`, with the
// list of supported ones, or corrupt with the name of the key.
Result<Tokenizer> tokenizer_of(const GgufVocabulary& vocabulary);

}  // namespace octavo
