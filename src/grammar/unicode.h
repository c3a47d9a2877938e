// Sets of Unicode code points, and UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"

namespace octavo::grammar {

inline constexpr std::uint32_t kCodePointMax = 0x10FFFF;

struct CodePointRange {
  std::uint32_t low, high;
  auto operator<=>(const CodePointRange&) const = default;
};

// Ranges in any order. They may overlap; normalized() sorts and joins them.
struct CodePointSet {
  std::vector<CodePointRange> ranges;

  void add(std::uint32_t low, std::uint32_t high) { ranges.push_back({low, high}); }
  void add(const CodePointSet& other) {
    ranges.insert(ranges.end(), other.ranges.begin(), other.ranges.end());
  }
  CodePointSet normalized() const;
  CodePointSet complement() const;
};

// name: long ("Lowercase_Letter") or short ("Ll", "L"). Returns nullopt for an unknown name.
std::optional<CodePointSet> general_category(std::string_view name);

// Returns an expression for the UTF-8 text of one code point of the set.
ExprId code_point_expr(Grammar& grammar, const CodePointSet& set);

void append_utf8(std::string& out, std::uint32_t code_point);

// Reads the code point at text[at] and advances `at`. For invalid UTF-8, returns nullopt and does not
// advance.
std::optional<std::uint32_t> next_code_point(std::string_view text, std::size_t& at);

std::optional<std::size_t> invalid_utf8(std::string_view text);

}  // namespace octavo::grammar
