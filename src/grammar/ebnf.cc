#include "grammar/ebnf.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "grammar/limits.h"
#include "grammar/notation.h"
#include "grammar/unicode.h"

namespace octavo::grammar {

namespace {

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class EbnfParser : NotationReader {
 public:
  EbnfParser(Grammar& grammar, std::string_view text, std::string_view field)
      : NotationReader(grammar, text, "EBNF", field) {}

  Result<RuleId> parse() {
    TRY_VOID(readable());
    for (skip(); at_ < text_.size(); skip()) TRY_VOID(definition());
    for (const auto& [name, rule] : rules_)
      if (!rule.defined)
        return error_at(rule.first_use, "the rule '{0}' is not defined; add a line '{0} ::= ...'", name);
    const auto root = rules_.find("root");
    if (root == rules_.end())
      return error("the rule 'root' is missing; a text begins with it: add a line 'root ::= ...'");
    return root->second.id;
  }

 private:
  struct Named {
    RuleId id;
    bool defined;
    std::size_t first_use;
  };

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
  // Returns true if the next definition (a name and ::=) begins here.
  bool at_definition() {
    const std::size_t start = at_;
    const bool yes = !name().empty() && (skip(), text_.substr(at_).starts_with("::="));
    at_ = start;
    return yes;
  }

  Named& named(std::string_view rule, std::size_t position) {
    const auto it = rules_.find(rule);
    if (it != rules_.end()) return it->second;
    return rules_.emplace(rule, Named{g_.rule(fmt::format("rule {}", rule)), false, position}).first->second;
  }

  Result<void> definition() {
    const std::size_t position = at_;
    const std::string_view rule = name();
    if (rule.empty()) return expected("a rule name (letters, digits, '-', '_')");
    skip();
    if (!take("::=")) return expected(fmt::format("'::=' after the rule name '{}'", rule));
    Named& entry = named(rule, position);
    if (entry.defined)
      return error_at(position, "the rule '{}' is defined a second time; join its definitions with '|'",
                      rule);
    entry.defined = true;
    const RuleId id = entry.id;
    TRY(g_.rules[id].body, alternatives(0));
    return {};
  }

  Result<ExprId> alternatives(int depth) {
    if (depth > kNestingMax)
      return error("groups are nested more than {} deep; move the inner ones to rules", kNestingMax);
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
    if (take("\"")) {
      TRY(const std::string bytes, quoted('"'));
      return g_.literal(bytes);
    }
    if (take("[")) return char_class();
    if (take(".")) return any_character();
    if (take("<")) return special_token();
    if (take("(")) {
      TRY(const ExprId body, alternatives(depth + 1));
      if (!take(")")) return expected("')' or more of the group");
      return body;
    }
    const std::size_t position = at_;
    if (const std::string_view rule = name(); !rule.empty()) return g_.call(named(rule, position).id);
    if (std::string_view("*+?{").contains(peek())) return nothing_to_repeat();
    return expected("a \"literal\", a [class], '.', a <token>, a (group) or a rule name");
  }

  Result<ExprId> quantified(ExprId part) {
    std::optional<std::uint32_t> min, max;
    if (take("*")) {
    } else if (take("+")) {
      min = 1;
    } else if (take("?")) {
      max = 1;
    } else if (take("{")) {
      skip();
      min = max = number();
      skip();
      if (take(",")) {
        skip();
        max = number();
        skip();
      }
      if (!take("}") || (!min && !max)) return expected("a repetition {m}, {m,}, {,n} or {m,n}");
    } else {
      return part;
    }
    if (std::string_view("*+?{").contains(peek()) && peek() != '\0') return second_quantifier();
    return repeated(part, min, max);
  }

  Result<ExprId> char_class() {
    const std::size_t opening = at_ - 1;
    const bool negated = take("^");
    CodePointSet set;
    while (!take("]")) {
      if (at_ >= text_.size()) return error_at(opening, "the class has no closing ']'");
      TRY(const std::uint32_t low, character());
      std::uint32_t high = low;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        TRY(high, character());
        if (high < low) return error("the range ends with a character before its first one; swap them");
      }
      set.add(low, high);
    }
    if (set.ranges.empty())
      return error_at(opening, "the class is empty; list a character, or write \"\" for the empty text");
    return code_point_expr(g_, negated ? set.complement() : set);
  }

  ExprId any_character() {
    CodePointSet all;
    all.add(0, kCodePointMax);
    return code_point_expr(g_, all);
  }

  std::map<std::string, Named, std::less<>> rules_;
};

}  // namespace

Result<RuleId> add_ebnf(Grammar& grammar, std::string_view text, std::string_view field) {
  return EbnfParser(grammar, text, field).parse();
}

}  // namespace octavo::grammar
