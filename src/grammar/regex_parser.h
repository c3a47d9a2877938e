// The syntax tree of a regular expression.
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
  CodePointSet set;                // for Kind::set: matches one code point of this set
  std::uint32_t min = 0, max = 0;  // for Kind::repeat; max may be kUnbounded
  std::size_t position = 0;        // offset in the pattern, in bytes
};

struct RegexTree {
  std::vector<RegexNode> nodes;  // children precede parents
  std::uint32_t root = 0;
};

struct RegexFlags {
  bool ignore_case = false;  // case-insensitive for ASCII letters; other characters are refused
  bool dot_all = false;      // . also matches line terminators
};

Result<RegexTree> parse_regex(std::string_view pattern, std::string_view field, RegexFlags flags = {});

}  // namespace octavo::grammar
