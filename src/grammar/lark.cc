#include "grammar/lark.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "grammar/ebnf.h"
#include "grammar/json_schema.h"
#include "grammar/lark_common.h"
#include "grammar/limits.h"
#include "grammar/notation.h"
#include "grammar/regex.h"
#include "grammar/unicode.h"

namespace octavo::grammar {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

bool is_terminal(std::string_view name) {
  return std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
}

class LarkParser : NotationReader {
 public:
  LarkParser(Grammar& grammar, std::string_view text, std::string_view field)
      : NotationReader(grammar, text, "Lark", field) {}

  Result<RuleId> parse() {
    TRY_VOID(readable());
    // Rule for ignored text. Before each terminal of a rule, this rule is called. Its body is complete only
    // after all statements were read.
    if (text_.contains("%ignore")) ignored_rule_ = g_.rule("%ignore");
    for (skip(true); !done(); skip(true)) TRY_VOID(statement());
    for (const auto& [name, entry] : names_)
      if (!entry.defined)
        return error_at(entry.first_use, "'{0}' is not defined; add a line '{0}: ...'", name);
    TRY_VOID(terminals_end());
    const auto start = names_.find("start");
    if (start == names_.end() && !first_rule_)
      return error("the grammar has no rule; add a line 'start: ...' (names of rules are lower case)");
    const RuleId rule = start == names_.end() ? *first_rule_ : start->second.id;
    if (!ignored_rule_) return rule;
    g_.rules[*ignored_rule_].body = g_.repeat(g_.choice(ignored_), 0, kUnbounded);
    return g_.rule("%start", g_.sequence({g_.call(rule), g_.call(*ignored_rule_)}));
  }

 private:
  struct Named {
    RuleId id;
    bool defined;
    std::size_t first_use;
    std::vector<std::string> uses;  // names of terminals that a terminal uses
  };

  // Skips white space and comments. lines: also skips line ends.
  void skip(bool lines) {
    for (; !done(); ++at_) {
      if (peek() == '#' || text_.substr(at_).starts_with("//"))
        at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
      else if (peek() == '\\' && text_.substr(at_ + 1).starts_with('\n'))
        ++at_;
      else if (!std::string_view(lines ? " \t\f\r\n" : " \t\f\r").contains(peek()))
        return;
    }
  }
  void skip() { skip(depth_ > 0); }

  // Reads a name, which may contain '-', but not the '-' of "->".
  std::string_view name() {
    const std::size_t start = at_;
    if (is_letter(peek()))
      while (is_letter(peek()) || is_ascii_digit(peek()) ||
             (peek() == '-' && at_ + 1 < text_.size() &&
              (is_letter(text_[at_ + 1]) || is_ascii_digit(text_[at_ + 1]))))
        ++at_;
    return text_.substr(start, at_ - start);
  }

  Named& named(std::string_view name, std::size_t position) {
    const auto it = names_.find(name);
    if (it != names_.end()) return it->second;
    return names_.emplace(name, Named{g_.rule(fmt::format("rule {}", name)), false, position, {}})
        .first->second;
  }
  Result<Named*> define(std::string_view name, std::size_t position) {
    Named& entry = named(name, position);
    if (entry.defined)
      return error_at(position, "'{}' is defined a second time; join its definitions with '|'", name);
    entry.defined = true;
    entry.first_use = position;
    return &entry;
  }

  Result<void> end_of_statement() {
    skip();
    if (done() || take("\n")) return {};
    return expected("the end of the line");
  }

  Result<void> statement() {
    const std::size_t position = at_;
    if (take("%import")) return import();
    if (take("%ignore")) {
      skip();
      in_terminal_ = nullptr;
      ignoring_ = true;
      TRY(ignored_.emplace_back(), alternatives());
      ignoring_ = false;
      return end_of_statement();
    }
    if (take("%")) {
      const std::string_view directive = name();
      return error_at(position, "the directive '%{}' is not supported; supported are %import and %ignore",
                      directive);
    }
    while (take("?") || take("!")) {
    }
    const std::string_view defined = name();
    if (defined.empty()) return expected("a name of a rule or terminal, %import or %ignore");
    if (peek() == '{') return error("templates are not supported; write a rule for each use");
    if (peek() == '[') return error("attributes of rules such as [lazy] are not supported; remove them");
    if (take(".")) {
      take("-");
      if (!number()) return expected("a priority (a whole number) after '.'");
    }
    skip();
    if (!take(":")) return expected(fmt::format("':' after the name '{}'", defined));
    TRY(Named* const entry, define(defined, position));
    in_terminal_ = is_terminal(defined) ? entry : nullptr;
    if (!in_terminal_ && !first_rule_) first_rule_ = entry->id;
    TRY(const ExprId body, alternatives());
    g_.rules[entry->id].body = body;
    return end_of_statement();
  }

  // Reads %import common.WS, %import common.WS -> SPACE, %import common (WS, INT).
  Result<void> import() {
    skip();
    const std::size_t position = at_;
    if (name() != "common")
      return error_at(position, "only terminals of 'common' can be imported, such as '%import common.INT'");
    if (take(".")) {
      TRY_VOID(import_one(true));
      return end_of_statement();
    }
    skip();
    if (!take("(")) return expected("'.' or '(' after 'common'");
    ++depth_;
    do {
      skip();
      TRY_VOID(import_one(false));
      skip();
    } while (take(","));
    --depth_;
    if (!take(")")) return expected("',' or ')'");
    return end_of_statement();
  }
  Result<void> import_one(bool may_rename) {
    const std::size_t position = at_;
    const std::string_view original = name();
    std::string_view known = original;
    const auto pattern = lark_common(original);
    if (!pattern)
      return error_at(position, "'common' has no terminal '{}'; define it in the grammar", original);
    skip();
    if (may_rename && take("->")) {
      skip();
      known = name();
      if (known.empty() || !is_terminal(known))
        return error_at(position, "the new name of '{}' must be a terminal (upper case), such as '-> NAME'",
                        original);
    }
    TRY(Named* const entry, define(known, position));
    TRY(g_.rules[entry->id].body, add_regex(g_, *pattern, RegexMatch::full, field_));
    return {};
  }

  // Reads alternatives up to the end of the line or group. If the next line begins with '|', also reads that
  // line.
  Result<ExprId> alternatives() {
    std::vector<ExprId> branches;
    do {
      TRY(branches.emplace_back(), sequence());
      const std::size_t line_end = at_;
      skip(true);
      if (peek() != '|') at_ = line_end;
    } while (take("|"));
    return g_.choice(std::move(branches));
  }

  Result<ExprId> sequence() {
    std::vector<ExprId> parts;
    for (skip(); !done() && !std::string_view("|)]\n").contains(peek()); skip()) {
      if (take("->")) {
        skip();
        if (name().empty()) return expected("the name of an alias after '->'");
        skip();
        break;
      }
      TRY(const ExprId part, atom());
      TRY(parts.emplace_back(), quantified(part));
    }
    return parts.empty() ? g_.empty() : g_.sequence(std::move(parts));
  }

  // If `text` is a terminal in a rule, adds a call of the rule for ignored text before it.
  ExprId terminal(ExprId text) {
    if (!ignored_rule_ || in_terminal_ || ignoring_) return text;
    return g_.sequence({g_.call(*ignored_rule_), text});
  }

  Result<ExprId> group(std::string_view close) {
    if (depth_ >= kNestingMax)
      return error("groups are nested more than {} deep; move the inner ones to rules", kNestingMax);
    ++depth_;
    TRY(const ExprId body, alternatives());
    --depth_;
    if (!take(close)) return expected(fmt::format("'{}' or more of the group", close));
    return body;
  }

  Result<ExprId> atom() {
    const std::size_t position = at_;
    const bool inside = in_terminal_ || ignoring_;
    if (take("(")) return group(")");
    if (take("[")) {
      TRY(const ExprId body, group("]"));
      return g_.optional(body);
    }
    if (peek() == '"' || peek() == '\'') return literal();
    if (take("/")) return regex(position);
    if (peek() == '<' || peek() == '%') {
      if (inside)
        return error("a terminal cannot contain a <token> or %json; use them in a rule (lower case)");
      if (take("<")) {
        TRY(const ExprId token, special_token());
        return terminal(token);
      }
      return json(position);
    }
    const std::string_view used = name();
    if (used.empty())
      return !done() && std::string_view("*+?~{").contains(peek())
                 ? nothing_to_repeat()
                 : expected("a \"literal\", a /regex/, a <token>, %json, a (group), an [option] or a name");
    if (peek() == '{' && at_ + 1 < text_.size() && !is_ascii_digit(text_[at_ + 1]) && text_[at_ + 1] != ',')
      return error("templates are not supported; write a rule for each use");
    if (inside && !is_terminal(used))
      return error_at(position, "a terminal cannot use the rule '{}'; make it a terminal (upper case)", used);
    const ExprId call = g_.call(named(used, position).id);
    if (in_terminal_) in_terminal_->uses.emplace_back(used);
    return is_terminal(used) ? terminal(call) : call;
  }

  Result<ExprId> literal() {
    const char quote = peek();
    const std::size_t position = at_++;
    TRY(const std::string content, quoted(quote));
    std::size_t at = 0;
    if (take("..")) {
      const char second = peek();
      if (second != '"' && second != '\'')
        return expected("the last character of the range in quotes, as in \"a\"..\"z\"");
      ++at_;
      TRY(const std::string end, quoted(second));
      std::size_t end_at = 0;
      const auto low = next_code_point(content, at), high = next_code_point(end, end_at);
      if (!low || !high || at != content.size() || end_at != end.size() || *low > *high)
        return error_at(
            position,
            "both ends of a range must be one character, the smaller one first, as in \"a\"..\"z\"");
      return terminal(g_.code_points(*low, *high));
    }
    if (peek() != 'i' || (at_ + 1 < text_.size() && (is_letter(text_[at_ + 1]) || is_ascii_digit(text_[at_ + 1]))))
      return terminal(g_.literal(content));
    ++at_;
    std::vector<ExprId> parts;
    for (const char c : content) {
      if (static_cast<unsigned char>(c) > 0x7F)
        return error_at(position,
                        "the suffix i supports ASCII letters only; write both cases of other letters");
      ByteSet either;
      either.add(static_cast<unsigned char>(c));
      if (is_letter(c) && c != '_') either.add(static_cast<unsigned char>(c) ^ 0x20u);
      parts.push_back(g_.bytes(either));
    }
    return terminal(g_.sequence(std::move(parts)));
  }

  Result<ExprId> regex(std::size_t position) {
    const std::size_t begin = at_;
    while (!done() && peek() != '/' && peek() != '\n') at_ += peek() == '\\' ? 2 : 1;
    if (done() || peek() != '/')
      return error_at(position,
                      "the regular expression has no closing '/' on its line; write a slash in it as \\/");
    const std::string_view pattern = text_.substr(begin, at_ - begin);
    RegexFlags flags;
    for (++at_; is_letter(peek()); ++at_) {
      if (peek() == 'i')
        flags.ignore_case = true;
      else if (peek() == 's')
        flags.dot_all = true;
      else if (peek() != 'u')
        return error("the flag '{}' of a regular expression is not supported; supported are i, s and u",
                     peek());
    }
    auto body = add_regex(g_, pattern, RegexMatch::full, field_, flags);
    if (!body) return error_at(position, "{}", body.error().message);
    return terminal(*body);
  }

  // Reads llguidance's %json {...}.
  Result<ExprId> json(std::size_t position) {
    if (!take("%json")) return expected("%json or a name");
    skip(true);
    const std::size_t begin = at_;
    int open = 0;
    bool string = false;
    do {
      if (done()) return error_at(position, "the JSON Schema after %json has no closing '}}'");
      const char c = text_[at_++];
      if (c == '"') string = !string;
      if (string && c == '\\') ++at_;
      if (!string && c == '{') ++open;
      if (!string && c == '}') --open;
    } while (open > 0 || string);
    const std::string_view schema = text_.substr(begin, std::min(at_, text_.size()) - begin);
    auto rule = add_json_schema(g_, schema, {}, field_);
    if (!rule) return error_at(position, "{}", rule.error().message);
    return terminal(g_.call(*rule));
  }

  // Reads ? * + ~n ~n..m, and llguidance's {n,m}.
  Result<ExprId> quantified(ExprId part) {
    skip();
    std::optional<std::uint32_t> min, max;
    if (take("*")) {
    } else if (take("+")) {
      min = 1;
    } else if (take("?")) {
      max = 1;
    } else if (take("~")) {
      skip();
      min = max = number();
      if (take("..")) max = number();
      if (!min || !max) return expected("a repetition ~n or ~n..m");
    } else if (take("{")) {
      min = max = number();
      if (take(",")) max = number();
      if (!take("}") || (!min && !max)) return expected("a repetition {m}, {m,}, {,n} or {m,n}");
    } else {
      return part;
    }
    if (std::string_view("*+?~{").contains(peek()) && !done()) return second_quantifier();
    return repeated(part, min, max);
  }

  // Returns an error if a terminal contains itself, because terminals must be regular. (Topological sort,
  // Kahn 1962.)
  Result<void> terminals_end() {
    std::map<std::string_view, std::vector<std::string_view>> users;
    std::map<std::string_view, std::size_t> open;
    std::vector<std::string_view> ready;
    for (const auto& [name, entry] : names_) {
      for (const std::string& used : entry.uses) users[used].push_back(name);
      open[name] = entry.uses.size();
      if (entry.uses.empty()) ready.push_back(name);
    }
    for (std::size_t i = 0; i < ready.size(); ++i)
      for (const std::string_view user : users[ready[i]])
        if (--open[user] == 0) ready.push_back(user);
    for (const auto& [name, count] : open)
      if (count > 0) {
        const std::size_t position = names_.find(name)->second.first_use;
        return error_at(position,
                        "the terminal '{}' contains itself; only rules (lower case) may be recursive", name);
      }
    return {};
  }

  std::map<std::string, Named, std::less<>> names_;
  std::optional<RuleId> ignored_rule_, first_rule_;
  std::vector<ExprId> ignored_;
  // terminal whose definition is being read
  Named* in_terminal_ = nullptr;
  bool ignoring_ = false;
  int depth_ = 0;
};

}  // namespace

bool is_lark(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool comment = text[at] == '#' || text.substr(at).starts_with("//");
    if (comment) at = std::min(text.find('\n', at), text.size() - 1);
    if (comment || std::string_view(" \t\r\n").contains(text[at])) continue;
    // Finds the first character after the name of the first definition.
    const std::size_t colon = text.find_first_of(":\"'/|", at);
    return colon == std::string_view::npos || !text.substr(colon).starts_with("::=");
  }
  return false;
}

Result<RuleId> add_lark(Grammar& grammar, std::string_view text, std::string_view field) {
  return LarkParser(grammar, text, field).parse();
}

Result<RuleId> add_ebnf_or_lark(Grammar& grammar, std::string_view text, std::string_view field) {
  return is_lark(text) ? add_lark(grammar, text, field) : add_ebnf(grammar, text, field);
}

Result<Grammar> ebnf_or_lark_grammar(std::string_view text) {
  Grammar grammar;
  TRY(grammar.root, add_ebnf_or_lark(grammar, text, "grammar"));
  return within_limits(std::move(grammar));
}

}  // namespace octavo::grammar
