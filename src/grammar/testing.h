// Helpers for tests: small vocabularies, and masks computed by checking every token.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/matcher.h"

namespace octavo::grammar::testing {

// Tokens 0 to 255 are single bytes. After them come `words`, <eos>, and the special tokens.
inline std::shared_ptr<const Vocabulary> byte_vocabulary(std::vector<std::string> words = {},
                                                         std::vector<std::string> special = {}) {
  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
  tokens.insert(tokens.end(), words.begin(), words.end());
  std::vector<TokenId> special_ids;
  const auto eos = static_cast<TokenId>(tokens.size());
  tokens.emplace_back("<eos>");
  for (std::string& text : special) {
    special_ids.push_back(static_cast<TokenId>(tokens.size()));
    tokens.push_back(std::move(text));
  }
  return *Vocabulary::make(std::move(tokens), std::move(special_ids), {eos});
}

// Appends the bytes to the matcher up to the first one that it rejects. Returns true if it accepts all bytes.
inline bool feed(Matcher& matcher, std::string_view text) {
  for (const char c : text)
    if (!matcher.accept(static_cast<std::uint8_t>(c))) return false;
  return true;
}

inline bool accepts(const std::shared_ptr<const CompiledGrammar>& grammar, std::string_view text) {
  Matcher matcher(grammar);
  return feed(matcher, text) && matcher.can_terminate();
}

inline std::vector<bool> mask_of(Matcher& matcher, const Vocabulary& vocabulary) {
  std::vector<std::int32_t> words(vocabulary.mask_words());
  std::vector<bool> out(static_cast<std::size_t>(vocabulary.size()), false);
  if (!matcher.fill_mask(words)) return out;
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::uint32_t>(words[i / 32]) >> (i % 32) & 1;
  return out;
}

// Calls accept() for each token on a copy of the matcher.
inline std::vector<bool> brute_force_mask(const Matcher& matcher, const Vocabulary& vocabulary) {
  std::vector<bool> out(static_cast<std::size_t>(vocabulary.size()), false);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    Matcher fork = matcher;
    out[static_cast<std::size_t>(id)] = fork.accept(id);
  }
  return out;
}

}  // namespace octavo::grammar::testing
