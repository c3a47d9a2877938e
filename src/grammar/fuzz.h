#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "grammar/testing.h"

namespace octavo::grammar::testing {

// Compiles the fuzzer's grammar. Each byte of `operations` is an operation on a matcher. Aborts if a mask
// differs from a check of every token, if the state after a rollback differs from a new parse, or if the
// matcher rejects forced bytes.
inline void drive(const Result<Grammar>& grammar, std::string_view operations) {
  static const auto vocabulary = byte_vocabulary({"\"a\"", "\":", "{\"", "\",", "ab", "abc", "  ", "12",
                                                  "\\n", "\xC3\xA9", "\xA9\"", "}}", "[]", "true,", "a\":1"},
                                                 {"<|x|>"});
  if (!grammar) {
    CHECK(!grammar.error().message.empty());
    return;
  }
  const auto compiled = CompiledGrammar::compile(*grammar, vocabulary, 4u << 20);
  if (!compiled) return;
  Matcher matcher(*compiled);
  std::vector<TokenId> taken;
  int checks = 0;
  for (const char c : operations.substr(0, 64)) {
    const auto op = static_cast<std::uint8_t>(c);
    if (matcher.is_terminated()) {
      matcher.rollback(1);
      taken.pop_back();
    }
    std::vector<std::int32_t> words(vocabulary->mask_words());
    if (!matcher.fill_mask(words)) return;  // no token can follow, or the text is too ambiguous
    const auto mask = mask_of(matcher, *vocabulary);
    if (op % 8 == 0 && checks++ < 6) CHECK(mask == brute_force_mask(matcher, *vocabulary));
    if (op % 8 == 1) {
      const std::size_t back = std::min<std::size_t>(op / 8, taken.size());
      matcher.rollback(back);
      taken.resize(taken.size() - back);
      Matcher replay(*compiled);
      for (const TokenId token : taken) CHECK(replay.accept(token));
      CHECK(mask_of(matcher, *vocabulary) == mask_of(replay, *vocabulary));
      continue;
    }
    if (op % 8 == 2) {
      const std::string forced = matcher.jump_forward();
      Matcher fork = matcher;
      CHECK(feed(fork, forced));
      continue;
    }
    std::vector<TokenId> allowed;
    for (std::size_t i = 0; i < mask.size(); ++i)
      if (mask[i]) allowed.push_back(static_cast<TokenId>(i));
    if (allowed.empty()) return;
    const TokenId token = allowed[op / 8 * 7u % allowed.size()];
    CHECK(matcher.accept(token));
    taken.push_back(token);
  }
}

inline std::pair<std::string_view, std::string_view> split(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const auto end = all.rfind('\x1e');
  if (end == std::string_view::npos) return {all, {}};
  return {all.substr(0, end), all.substr(end + 1)};
}

}  // namespace octavo::grammar::testing
