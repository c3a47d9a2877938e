// For tests of grammars in the engine: a vocabulary, grammars, and the tokens that the simulated device
// outputs under a grammar.
#pragma once

#include "engine/testing/rig.h"
#include "grammar/grammar_cache.h"

namespace octavo {

inline constexpr TokenId kEndOfText = 999;

// Returns a vocabulary of tokens with one to three letters. Token 999 ends a text.
inline MakeVocabulary letters(grammar::Vocabulary::Encode encode = {}) {
  return [encode] {
    std::vector<std::string> tokens;
    for (int id = 0; id < kVocab; ++id) {
      const std::string letter(1, static_cast<char>('a' + id % 26));
      tokens.push_back(id < 26 ? letter : letter + std::to_string(id / 26));
    }
    return grammar::Vocabulary::make(std::move(tokens), {}, {kEndOfText}, 1 << 20, encode);
  };
}

inline grammar::GrammarSource regex(const std::string& text) {
  return {.kind = grammar::GrammarKind::regex, .text = text, .field = "structured_outputs.regex"};
}

inline std::shared_ptr<const grammar::CompiledGrammar> compiled(
    const grammar::GrammarSource& source, const MakeVocabulary& vocabulary = letters()) {
  return grammar::GrammarCache(vocabulary().value(), 1 << 20).compile(source).value();
}

inline std::vector<TokenId> spelled(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(c - 'a');
  return ids;
}

inline Setup tight(Mode mode, MakeVocabulary vocabulary = letters()) {
  return {.num_blocks = 24,
          .max_tokens = 48,
          .max_model_len = 320,
          .mode = mode,
          .vocabulary = std::move(vocabulary)};
}

// Returns the tokens that the simulated device outputs under the grammar, with or without forced tokens.
// Stops at the end of the text or after `count` tokens.
inline std::vector<TokenId> expected_under(const std::shared_ptr<const grammar::CompiledGrammar>& grammar,
                                           std::vector<TokenId> tokens, int count, bool jumps = false) {
  const std::size_t prompt = tokens.size();
  grammar::Matcher matcher(grammar);
  std::vector<std::int32_t> mask((kVocab + 31) / 32);
  const auto full = [&] { return tokens.size() == prompt + static_cast<std::size_t>(count); };
  while (!full() && !matcher.is_terminated()) {
    EXPECT_TRUE(matcher.fill_mask(mask).has_value());
    tokens.push_back(SimulatedExecutor::allowed_from(SimulatedExecutor::next(tokens, kVocab), mask, kVocab));
    EXPECT_TRUE(matcher.accept(tokens.back()));
    for (const TokenId token : jumps ? matcher.forced_tokens() : std::vector<TokenId>{}) {
      if (full()) break;
      tokens.push_back(token);
      EXPECT_TRUE(matcher.accept(token));
    }
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt), tokens.end()};
}

}  // namespace octavo
