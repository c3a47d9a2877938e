// Parses a regular expression to a syntax tree.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "grammar/unicode.h"

namespace octavo::grammar {

struct RegexNode {
  enum class Kind : std::uint8_t { alternatives, sequence, repeat, set, begin, end, boundary, no_boundary };
  Kind kind;
  std::vector<std::uint32_t> children;
  CodePointSet set;  // used by Kind::set: matches one code point of this set
  // used by Kind::repeat: bounds of the repetition; max: kUnbounded for no limit
  std::uint32_t min = 0, max = 0;
  std::size_t position = 0;  // offset in the pattern in bytes
};

struct RegexTree {
  std::vector<RegexNode> nodes;  // children come before their parents
  std::uint32_t root = 0;
};

struct RegexFlags {
  // (?i): ignores the case of ASCII letters; other letters that have case are an error
  bool ignore_case = false;
  bool dot_all = false;      // . also matches line terminators
};

Result<RegexTree> parse_regex(std::string_view pattern, std::string_view field, RegexFlags flags = {});

}  // namespace octavo::grammar
