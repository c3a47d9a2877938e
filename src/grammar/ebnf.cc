#include "grammar/ebnf.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>

#include "grammar/limits.h"
#include "grammar/unicode.h"

namespace octavo::grammar {

namespace {

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class Parser {
 public:
  Parser(Grammar& grammar, std::string_view text, std::string_view field)
      : g_(grammar), text_(text), field_(field) {}

  Result<RuleId> parse() {
    if (text_.size() > kSourceBytesMax)
      return invalid(field_, "EBNF: {} bytes, the limit is {}", text_.size(), kSourceBytesMax);
    if (const auto bad = invalid_utf8(text_))
      return invalid(field_, "EBNF: invalid UTF-8 at offset {}", *bad);
    for (skip(); at_ < text_.size(); skip()) TRY_VOID(definition());
    for (const auto& [name, rule] : rules_)
      if (!rule.defined) return error_at(rule.first_use, "the rule '{}' is not defined", name);
    const auto root = rules_.find("root");
    if (root == rules_.end()) return error("there is no rule 'root'");
    return root->second.id;
  }

 private:
  struct Named {
    RuleId id;
    bool defined;
    std::size_t first_use;
  };

  template <class... Args>
  std::unexpected<Error> error_at(std::size_t offset, fmt::format_string<Args...> text,
                                  Args&&... args) const {
    const std::string_view before = text_.substr(0, offset);
    const auto line = 1 + std::ranges::count(before, '\n');
    const auto start = before.rfind('\n');
    const std::size_t column = offset - (start == std::string_view::npos ? 0 : start + 1) + 1;
    return invalid(field_, "EBNF: {} at line {}, column {}", fmt::format(text, std::forward<Args>(args)...),
                   line, column);
  }
  template <class... Args>
  std::unexpected<Error> error(fmt::format_string<Args...> text, Args&&... args) const {
    return error_at(at_, text, std::forward<Args>(args)...);
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view s) { return text_.substr(at_).starts_with(s) && (at_ += s.size(), true); }
  void skip() {
    for (; at_ < text_.size(); ++at_) {
      if (peek() == '#')
        at_ = std::min(text_.find('\n', at_), text_.size() - 1);
      else if (!std::string_view(" \t\r\n").contains(peek()))
        return;
    }
  }
  std::string_view name() {
    const std::size_t start = at_;
    while (is_name(peek())) ++at_;
    return text_.substr(start, at_ - start);
  }
  // Whether a name and ::= come next: the definition under way has ended.
  bool at_definition() {
    const std::size_t start = at_;
    const bool yes = !name().empty() && (skip(), text_.substr(at_).starts_with("::="));
    at_ = start;
    return yes;
  }

  Named& named(std::string_view rule, std::size_t position) {
    const auto it = rules_.find(rule);
    if (it != rules_.end()) return it->second;
    return rules_.emplace(rule, Named{g_.rule(std::string(rule)), false, position}).first->second;
  }

  Result<void> definition() {
    const std::size_t position = at_;
    const std::string_view rule = name();
    if (rule.empty()) return error("a rule name was expected");
    skip();
    if (!take("::=")) return error("'::=' was expected");
    Named& entry = named(rule, position);
    if (entry.defined) return error_at(position, "the rule '{}' is defined twice", rule);
    entry.defined = true;
    const RuleId id = entry.id;
    TRY(g_.rules[id].body, alternatives(0));
    return {};
  }

  Result<ExprId> alternatives(int depth) {
    if (depth > kNestingMax) return error("groups nest more than {} deep", kNestingMax);
    std::vector<ExprId> branches;
    do {
      TRY(branches.emplace_back(), sequence(depth));
    } while (take("|"));
    return g_.choice(std::move(branches));
  }

  Result<ExprId> sequence(int depth) {
    std::vector<ExprId> parts;
    for (skip(); at_ < text_.size() && peek() != '|' && peek() != ')' && !at_definition(); skip()) {
      TRY(const ExprId part, atom(depth));
      TRY(parts.emplace_back(), quantified(part));
    }
    return parts.empty() ? g_.empty() : g_.sequence(std::move(parts));
  }

  Result<ExprId> atom(int depth) {
    if (take("\"")) return literal();
    if (take("[")) return char_class();
    if (take(".")) return any_character();
    if (take("<")) return token();
    if (take("(")) {
      TRY(const ExprId body, alternatives(depth + 1));
      if (!take(")")) return error("')' was expected");
      return body;
    }
    const std::size_t position = at_;
    if (const std::string_view rule = name(); !rule.empty()) return g_.call(named(rule, position).id);
    if (std::string_view("*+?{").contains(peek())) return error("a quantifier with nothing before it");
    return error("an unexpected character");
  }

  Result<ExprId> quantified(ExprId part) {
    std::uint32_t min = 0, max = kUnbounded;
    if (take("*")) {
    } else if (take("+")) {
      min = 1;
    } else if (take("?")) {
      max = 1;
    } else if (take("{")) {
      skip();
      const auto low = number();
      skip();
      std::optional<std::uint32_t> high = low;
      if (take(",")) {
        skip();
        high = number();
        skip();
      }
      if (!take("}") || (!low && !high)) return error("a malformed repetition");
      min = low.value_or(0);
      max = high.value_or(kUnbounded);
      if (min > kRepeatMax || (high && max > kRepeatMax)) return error("a repetition beyond {}", kRepeatMax);
      if (min > max) return error("a repetition of at least {} and at most {}", min, max);
    } else {
      return part;
    }
    if (std::string_view("*+?{").contains(peek()) && peek() != '\0')
      return error("a quantifier on a quantifier");
    return g_.repeat(part, min, max);
  }

  std::optional<std::uint32_t> number() {
    const std::size_t start = at_;
    std::uint64_t value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_)
      value = std::min<std::uint64_t>(value * 10 + static_cast<std::uint64_t>(peek() - '0'), kUnbounded);
    return at_ > start ? std::optional(static_cast<std::uint32_t>(value)) : std::nullopt;
  }

  Result<std::uint32_t> escape() {
    const char c = peek();
    ++at_;
    const auto hex = [&](std::size_t digits) -> Result<std::uint32_t> {
      std::uint32_t value = 0;
      const char* first = text_.data() + at_;
      if (at_ + digits > text_.size() ||
          std::from_chars(first, first + digits, value, 16).ptr != first + digits)
        return error("an escape without {} hexadecimal digits", digits);
      if (value > kCodePointMax || (value >= 0xD800 && value < 0xE000))
        return error("an escape that is no code point");
      at_ += digits;
      return value;
    };
    switch (c) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return hex(2);
      case 'u':
        return hex(4);
      case 'U':
        return hex(8);
      default:
        break;
    }
    if (std::string_view("\"\\[]^-'/.").contains(c) && c != '\0') return static_cast<std::uint32_t>(c);
    --at_;
    return error("an unknown escape");
  }

  Result<std::uint32_t> character() {
    if (take("\\")) return escape();
    const auto c = next_code_point(text_, at_);
    if (!c) return error("the text ends inside a literal or class");
    return *c;
  }

  Result<ExprId> literal() {
    std::string bytes;
    while (!take("\"")) {
      if (at_ >= text_.size() || peek() == '\n') return error("a literal without end");
      TRY(const std::uint32_t c, character());
      append_utf8(bytes, c);
    }
    return g_.literal(bytes);
  }

  Result<ExprId> char_class() {
    const bool negated = take("^");
    CodePointSet set;
    while (!take("]")) {
      if (at_ >= text_.size()) return error("a class without ']'");
      TRY(const std::uint32_t low, character());
      std::uint32_t high = low;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        TRY(high, character());
        if (high < low) return error("a range that runs backwards");
      }
      set.add(low, high);
    }
    if (set.ranges.empty()) return error("an empty class");
    return code_point_expr(g_, negated ? set.complement() : set);
  }

  ExprId any_character() {
    CodePointSet all;
    all.add(0, kCodePointMax);
    return code_point_expr(g_, all);
  }

  Result<ExprId> token() {
    const std::size_t end = text_.find_first_of(">\n", at_);
    if (end == std::string_view::npos || text_[end] == '\n' || end == at_)
      return error("a token without '>'");
    const std::string_view inner = text_.substr(at_, end - at_);
    TokenAtom atom;
    if (inner.starts_with('[') && inner.ends_with(']')) {
      const std::string_view digits = inner.substr(1, inner.size() - 2);
      const auto [stop, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), atom.id);
      if (problem != std::errc() || stop != digits.data() + digits.size() || atom.id < 0)
        return error("a malformed token number");
    } else {
      atom.text = fmt::format("<{}>", inner);
    }
    at_ = end + 1;
    return g_.token(std::move(atom));
  }

  Grammar& g_;
  std::string_view text_, field_;
  std::size_t at_ = 0;
  std::map<std::string, Named, std::less<>> rules_;
};

}  // namespace

Result<RuleId> add_ebnf(Grammar& grammar, std::string_view text, std::string_view field) {
  return Parser(grammar, text, field).parse();
}

Result<Grammar> ebnf_grammar(std::string_view text) {
  Grammar grammar;
  TRY(grammar.root, add_ebnf(grammar, text, "grammar"));
  return within_limits(std::move(grammar));
}

}  // namespace octavo::grammar
