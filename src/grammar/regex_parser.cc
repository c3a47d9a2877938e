#include "grammar/regex_parser.h"

#include <algorithm>
#include <optional>
#include <string>

#include "grammar/limits.h"
#include "grammar/text_position.h"

namespace octavo::grammar {

namespace {

CodePointSet set_of(std::initializer_list<CodePointRange> ranges) { return {ranges}; }

CodePointSet digits() { return set_of({{'0', '9'}}); }
CodePointSet word() { return set_of({{'a', 'z'}, {'A', 'Z'}, {'0', '9'}, {'_', '_'}}); }
CodePointSet space() {
  return set_of({{'\t', '\r'},
                 {' ', ' '},
                 {0xA0, 0xA0},
                 {0x1680, 0x1680},
                 {0x2000, 0x200A},
                 {0x2028, 0x2029},
                 {0x202F, 0x202F},
                 {0x205F, 0x205F},
                 {0x3000, 0x3000},
                 {0xFEFF, 0xFEFF}});
}
CodePointSet single(std::uint32_t c) { return set_of({{c, c}}); }

// Returns the set of a one-letter escape such as \d or \n.
std::optional<CodePointSet> letter_class(char c) {
  switch (c) {
    case 'n':
      return single('\n');
    case 'r':
      return single('\r');
    case 't':
      return single('\t');
    case 'f':
      return single('\f');
    case 'v':
      return single('\v');
    case 'd':
      return digits();
    case 'D':
      return digits().complement();
    case 'w':
      return word();
    case 'W':
      return word().complement();
    case 's':
      return space();
    case 'S':
      return space().complement();
    default:
      return std::nullopt;
  }
}

CodePointSet line_terminators() { return set_of({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// For each ASCII letter, adds the letter in the other case. Also adds the four non-ASCII letters that match
// i, s or k if case is ignored (in Python and Unicode).
CodePointSet without_case(const CodePointSet& set) {
  CodePointSet out = set;
  for (const auto& [low, high] : set.ranges)
    for (std::uint32_t upper = 'A'; upper <= 'Z'; ++upper) {
      const std::uint32_t lower = upper + 32;
      if ((upper < low || upper > high) && (lower < low || lower > high)) continue;
      out.add(upper, upper);
      out.add(lower, lower);
      if (upper == 'I') out.add(0x130, 0x131);
      if (upper == 'S') out.add(0x17F, 0x17F);
      if (upper == 'K') out.add(0x212A, 0x212A);
    }
  return out.normalized();
}

class PatternParser {
 public:
  PatternParser(std::string_view pattern, std::string_view field, RegexFlags flags)
      : text_(pattern), field_(field), flags_(flags) {}

  Result<RegexTree> parse() {
    if (text_.size() > kRegexBytesMax)
      return invalid(field_, "regex: the pattern has {} bytes, the limit is {}; shorten it", text_.size(),
                     kRegexBytesMax);
    if (const auto bad = invalid_utf8(text_))
      return invalid(field_, "regex, {}: invalid UTF-8; send the pattern as UTF-8",
                     line_and_column(text_, *bad));
    TRY_VOID(leading_flags());
    TRY(tree_.root, alternatives(0));
    if (!done()) return error("')' without a '(' before it; to match the character, write \\)");
    return std::move(tree_);
  }

 private:
  using Kind = RegexNode::Kind;

  bool done() const { return at_ == text_.size(); }
  bool next_is(char c) const { return !done() && text_[at_] == c; }
  bool take(char c) { return next_is(c) && (++at_, true); }
  bool take(std::string_view s) { return text_.substr(at_).starts_with(s) && (at_ += s.size(), true); }

  template <class... Args>
  std::unexpected<Error> error_at(std::size_t offset, fmt::format_string<Args...> text,
                                  Args&&... args) const {
    return invalid(field_, "regex, {}: {}", line_and_column(text_, offset),
                   fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  std::unexpected<Error> error(fmt::format_string<Args...> text, Args&&... args) const {
    return error_at(at_, text, std::forward<Args>(args)...);
  }
  std::unexpected<Error> nothing_to_repeat() const {
    return error("the quantifier '{0}' has nothing before it to repeat; to match the character, write \\{0}",
                 text_[at_]);
  }
  std::unexpected<Error> back_reference() const {
    return error("back references are not supported; repeat the group's pattern, or list the texts with '|'");
  }

  static bool is_single(const CodePointSet& s) {
    return s.ranges.size() == 1 && s.ranges[0].low == s.ranges[0].high;
  }

  std::uint32_t add(RegexNode node) {
    tree_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(tree_.nodes.size() - 1);
  }

  Result<std::uint32_t> alternatives(int depth) {
    if (depth > kNestingMax)
      return error("groups are nested more than {} deep; flatten the pattern", kNestingMax);
    const std::size_t position = at_;
    std::vector<std::uint32_t> branches;
    do {
      TRY(branches.emplace_back(), sequence(depth));
    } while (take('|'));
    if (branches.size() == 1) return branches[0];
    return add({Kind::alternatives, std::move(branches), {}, 0, 0, position});
  }

  Result<std::uint32_t> sequence(int depth) {
    const std::size_t position = at_;
    std::vector<std::uint32_t> parts;
    while (!done() && !next_is('|') && !next_is(')')) {
      TRY(const std::uint32_t part, atom(depth));
      TRY(parts.emplace_back(), quantified(part));
    }
    return add({Kind::sequence, std::move(parts), {}, 0, 0, position});
  }

  Result<std::uint32_t> atom(int depth) {
    const std::size_t position = at_;
    if (take('^')) return add({Kind::begin, {}, {}, 0, 0, position});
    if (take('$')) return add({Kind::end, {}, {}, 0, 0, position});
    if (next_is('*') || next_is('+') || next_is('?')) return nothing_to_repeat();
    std::uint32_t min, max;
    const std::size_t before = at_;
    if (next_is('{') && braces(min, max)) {
      at_ = before;
      return nothing_to_repeat();
    }
    if (take('(')) return group(depth);
    if (take('.')) {
      const CodePointSet any = set_of({{0, kCodePointMax}});
      return add({Kind::set, {}, flags_.dot_all ? any : line_terminators().complement(), 0, 0, position});
    }
    if (take('[')) {
      TRY(CodePointSet set, char_class());
      return add({Kind::set, {}, std::move(set), 0, 0, position});
    }
    if (take('\\')) return escaped_atom(position);
    const std::uint32_t c = *next_code_point(text_, at_);
    TRY(CodePointSet set, cased({c, c}));
    return add({Kind::set, {}, std::move(set), 0, 0, position});
  }

  // Returns the set that a range matches with the current flags.
  Result<CodePointSet> cased(CodePointRange range) const {
    if (!flags_.ignore_case) return set_of({range});
    if (range.high > 0x7F)
      return error(
          "the flag i supports ASCII characters only; write both cases of other characters, as in "
          "[\u00c4\u00e4]");
    return without_case(set_of({range}));
  }

  Result<std::uint32_t> escaped_atom(std::size_t position) {
    if (take('A')) return add({Kind::begin, {}, {}, 0, 0, position});
    if (take('Z') || take('z')) return add({Kind::end, {}, {}, 0, 0, position});
    if (take('b')) return add({Kind::boundary, {}, {}, 0, 0, position});
    if (take('B')) return add({Kind::no_boundary, {}, {}, 0, 0, position});
    if (!done() && text_[at_] >= '1' && text_[at_] <= '9') return back_reference();
    if (next_is('k')) return back_reference();
    TRY(CodePointSet set, escape());
    if (is_single(set)) {
      TRY(set, cased(set.ranges[0]));
    }
    return add({Kind::set, {}, std::move(set), 0, 0, position});
  }

  // Reads the letters of (?is) and (?is:...).
  Result<> flag_letters() {
    for (; !done() && text_[at_] >= 'a' && text_[at_] <= 'z'; ++at_) {
      if (text_[at_] == 'i')
        flags_.ignore_case = true;
      else if (text_[at_] == 's')
        flags_.dot_all = true;
      else
        return error("the flag '{}' is not supported; supported are i and s", text_[at_]);
    }
    return {};
  }

  static bool is_flag_group(std::string_view text) {  // text: after "(?"
    const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz");
    return end != std::string_view::npos && end > 0 && (text[end] == ')' || text[end] == ':');
  }

  // (?i) at the beginning applies to the whole pattern, as in Python.
  Result<> leading_flags() {
    constexpr std::string_view kOpen = "(?";
    while (text_.substr(at_).starts_with(kOpen) && is_flag_group(text_.substr(at_ + kOpen.size())) &&
           text_[text_.find_first_of("):", at_ + kOpen.size())] == ')') {
      at_ += kOpen.size();
      TRY_VOID(flag_letters());
      ++at_;
    }
    return {};
  }

  Result<std::uint32_t> group(int depth) {
    const std::size_t opening = at_ - 1;
    const RegexFlags outside = flags_;
    if (take("?:")) {
    } else if (next_is('?') && is_flag_group(text_.substr(at_ + 1))) {
      ++at_;
      TRY_VOID(flag_letters());
      if (!take(':'))
        return error("flags are supported at the beginning of the pattern, or for a group: (?i:...)");
    } else if (take("?=") || take("?!") || take("?<=") || take("?<!")) {
      return error(
          "lookaround is not supported here, only a lookahead at the beginning of a schema's pattern; "
          "rewrite the pattern without it");
    } else if (take("?P=")) {
      return back_reference();
    } else if (take("?P<") || take("?<")) {
      const std::size_t end = text_.find('>', at_);
      if (end == std::string_view::npos || end == at_)
        return error("a group name needs a closing '>', as in (?<name>...)");
      for (; at_ < end; ++at_) {
        const char c = text_[at_];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
        if (!letter && !is_digit(c))
          return error("{} in a group name; use letters, digits, '_' and '$'", found_at(text_, at_));
      }
      ++at_;
    } else if (next_is('?')) {
      return error(
          "groups of this kind are not supported; supported are (...), (?:...), (?<name>...), (?i:...) and "
          "(?s:...)");
    }
    TRY(const std::uint32_t body, alternatives(depth + 1));
    flags_ = outside;
    if (!take(')'))
      return error_at(opening, "the group has no closing ')'; to match the character '(', write \\(");
    return body;
  }

  // Reads {m}, {m,}, {,n} or {m,n}. Returns false if the braces contain other text; then they are literal.
  bool braces(std::uint32_t& min, std::uint32_t& max) {
    const std::size_t start = at_;
    const auto number = [&](std::uint32_t& value) {
      const std::size_t first = at_;
      std::uint64_t n = 0;
      for (; !done() && is_digit(text_[at_]); ++at_)
        n = std::min<std::uint64_t>(n * 10 + static_cast<std::uint64_t>(text_[at_] - '0'), kUnbounded);
      value = static_cast<std::uint32_t>(n);
      return at_ > first;
    };
    ++at_;
    const bool has_min = number(min);
    if (!has_min) min = 0;
    max = min;
    bool ok = has_min;
    if (take(',')) {
      const bool has_max = number(max);
      if (!has_max) max = kUnbounded;
      ok = has_min || has_max;
      unbounded_ = !has_max;
    } else {
      unbounded_ = false;
    }
    if (ok && take('}')) return true;
    at_ = start;
    return false;
  }

  Result<std::uint32_t> quantified(std::uint32_t part) {
    const std::size_t position = at_;
    std::uint32_t min = 0, max = kUnbounded;
    if (take('*')) {
    } else if (take('+')) {
      min = 1;
    } else if (take('?')) {
      max = 1;
    } else if (next_is('{') && braces(min, max)) {
      if (min > kRepeatMax || (!unbounded_ && max > kRepeatMax))
        return error_at(position, "a repetition count exceeds the limit of {}; lower it", kRepeatMax);
      if (min > max)
        return error_at(position, "the minimum {} of the repetition exceeds its maximum {}; swap them", min,
                        max);
    } else {
      return part;
    }
    const Kind kind = tree_.nodes[part].kind;
    if (kind == Kind::begin || kind == Kind::end || kind == Kind::boundary || kind == Kind::no_boundary)
      return error_at(position, "a quantifier after an anchor or word boundary; remove one of the two");
    take('?');  // A lazy quantifier matches the same texts, so its '?' is skipped.
    if (next_is('+'))
      return error("possessive quantifiers and second quantifiers are not supported; remove this '+'");
    if (next_is('*') || next_is('?'))
      return error("a second quantifier '{}'; remove it, or write (?:...) around the repeated part",
                   text_[at_]);
    return add({Kind::repeat, {part}, {}, min, max, position});
  }

  std::optional<std::uint32_t> hex(std::size_t digits_count) {
    if (at_ + digits_count > text_.size()) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < digits_count; ++i) {
      const char c = text_[at_ + i];
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return std::nullopt;
      value = value * 16 + static_cast<std::uint32_t>(digit);
    }
    at_ += digits_count;
    return value;
  }

  Result<std::uint32_t> unicode_escape() {
    std::optional<std::uint32_t> c;
    if (take('{')) {
      const std::size_t end = text_.find('}', at_);
      if (end != std::string_view::npos && end > at_ && end - at_ <= 6) c = hex(end - at_);
      if (!c || !take('}')) return error("\\u{{...}} needs 1 to 6 hexadecimal digits");
    } else {
      c = hex(4);
      if (!c) return error("\\u needs 4 hexadecimal digits, found {}", found_at(text_, at_));
      if (*c >= 0xD800 && *c < 0xDC00 && take("\\u")) {
        const auto low = hex(4);
        if (!low || *low < 0xDC00 || *low > 0xDFFF)
          return error("\\uD800 to \\uDBFF needs a second half \\uDC00 to \\uDFFF; or write \\u{{...}}");
        c = 0x10000 + ((*c - 0xD800) << 10) + (*low - 0xDC00);
      }
    }
    if (*c > kCodePointMax || (*c >= 0xD800 && *c < 0xE000))
      return error("U+{:04X} is not a character; write a code point up to U+10FFFF outside U+D800 to U+DFFF",
                   *c);
    return *c;
  }

  // Reads the rest of \p{NAME} or \P{NAME}, starting at the letter p or P.
  Result<CodePointSet> category_escape() {
    const char c = text_[at_];
    if (flags_.ignore_case)
      return error("\\{}{{...}} is not supported with the flag i; write the characters as a class", c);
    ++at_;
    const std::size_t end = take('{') ? text_.find('}', at_) : std::string_view::npos;
    if (end == std::string_view::npos) return error("\\{0} needs a category in braces, as in \\{0}{{L}}", c);
    std::string_view name = text_.substr(at_, end - at_);
    for (const std::string_view prefix : {"General_Category=", "gc="})
      if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    const auto set = general_category(name);
    if (!set)
      return error("\\{}{{{}}} is not supported; supported are general categories such as L, Lu, Nd and P", c,
                   name);
    at_ = end + 1;
    ranges_ += set->ranges.size();
    if (ranges_ > kCategoryRangesMax)
      return error("the Unicode categories have more than {} ranges in total; use fewer", kCategoryRangesMax);
    return c == 'p' ? *set : set->complement();
  }

  // Reads the escape after a backslash, inside or outside a class.
  Result<CodePointSet> escape() {
    if (done()) return error("a backslash at the end of the pattern; to match the character, write \\\\");
    const char c = text_[at_];
    if (const auto set = letter_class(c)) {
      ++at_;
      return *set;
    }
    if (c == '0' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))
      return error("octal escapes are not supported; write \\xHH");
    if (c == 'p' || c == 'P') return category_escape();
    if (take('x')) {
      const auto value = hex(2);
      if (!value) return error("\\x needs 2 hexadecimal digits, found {}", found_at(text_, at_));
      return single(*value);
    }
    if (take('u')) {
      TRY(const std::uint32_t value, unicode_escape());
      return single(value);
    }
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter || (is_digit(c) && c != '0'))
      return error("the escape \\{} is not supported; to match the character, write it without the backslash",
                   c);
    if (take('0')) return single(0);
    return single(*next_code_point(text_, at_));
  }

  // Reads one member of a class: a code point, or an escape that may be a set.
  Result<CodePointSet> class_member() {
    if (take('\\')) {
      if (take('b')) return set_of({{'\b', '\b'}});
      return escape();
    }
    const std::uint32_t c = *next_code_point(text_, at_);
    return set_of({{c, c}});
  }

  Result<CodePointSet> char_class() {
    const std::size_t opening = at_ - 1;
    const bool negated = take('^');
    if (next_is(']')) return error_at(opening, "the class is empty; list a character (a literal ']' is \\])");
    CodePointSet set;
    while (!take(']')) {
      if (done())
        return error_at(opening, "the class has no closing ']'; to match the character '[', write \\[");
      TRY(CodePointSet low, class_member());
      if (!next_is('-') || at_ + 1 >= text_.size() || text_[at_ + 1] == ']') {
        if (is_single(low)) {
          TRY(low, cased(low.ranges[0]));
        }
        set.add(low);
        continue;
      }
      ++at_;
      TRY(const CodePointSet high, class_member());
      if (!is_single(low) || !is_single(high))
        return error("a range needs one character at each end; put a literal '-' last in the class");
      if (low.ranges[0].low > high.ranges[0].low)
        return error(
            "the range ends with a character before its first one; swap them, or put a literal '-' last");
      TRY(const CodePointSet range, cased({low.ranges[0].low, high.ranges[0].low}));
      set.add(range);
    }
    set = set.normalized();
    return negated ? set.complement() : set;
  }

  std::string_view text_;
  std::string_view field_;
  RegexFlags flags_;
  std::size_t at_ = 0;
  bool unbounded_ = false;
  RegexTree tree_;
  std::size_t ranges_ = 0;  // number of character ranges in all general categories (\p) so far
};

}  // namespace

Result<RegexTree> parse_regex(std::string_view pattern, std::string_view field, RegexFlags flags) {
  return PatternParser(pattern, field, flags).parse();
}

}  // namespace octavo::grammar
