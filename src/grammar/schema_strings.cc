// Converts conditions on strings (pattern, format, lengths) to automata.
#include <algorithm>

#include "grammar/json_string.h"
#include "grammar/limits.h"
#include "grammar/regex.h"
#include "grammar/schema_reader.h"
#include "grammar/string_format.h"

namespace octavo::grammar {

namespace {

std::string whole(std::string_view pattern) { return fmt::format("^(?:{})$", pattern); }

std::string text_of(const Facts::Pattern& p) { return p.schema->find("pattern")->text; }

// Returns the length of the regex element at `at`: an escape, a class or a character.
std::size_t piece_at(std::string_view text, std::size_t at) {
  if (text[at] == '\\') return 2;
  if (text[at] != '[') return 1;
  std::size_t end = at + 1;
  while (end < text.size() && text[end] != ']') end += text[end] == '\\' ? 2 : 1;
  return end + 1 - at;
}

// Returns the position of the first `wanted` character that is outside of all groups, or the size of the
// text.
std::size_t find_outside_groups(std::string_view text, std::string_view wanted) {
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); at += piece_at(text, at)) {
    if (depth == 0 && wanted.contains(text[at])) return at;
    depth += (text[at] == '(') - (text[at] == ')');
  }
  return text.size();
}

// `^(?=a)b`: a text must match both a and b. `^(?!a)b`: a text must match b and must not match a.
struct Lookahead {
  std::string ahead, rest;
  bool negative;
};
std::optional<Lookahead> first_lookahead(std::string_view text) {
  if (!text.starts_with("^(?=") && !text.starts_with("^(?!")) return std::nullopt;
  const std::string_view behind = text.substr(4);
  const std::size_t end = find_outside_groups(behind, ")");
  if (end >= behind.size()) return std::nullopt;
  const std::string_view ahead = behind.substr(0, end), rest = behind.substr(end + 1);
  // If the rest has alternatives, the lookahead would belong only to the first one.
  if (find_outside_groups(rest, "|") < rest.size()) return std::nullopt;
  const bool choice = find_outside_groups(ahead, "|") < ahead.size();
  return Lookahead{.ahead = choice ? fmt::format("^(?:{})", ahead) : fmt::format("^{}", ahead),
                   .rest = fmt::format("^{}", rest),
                   .negative = text[3] == '!'};
}

}  // namespace

Result<const Automaton*> SchemaReader::pattern(std::string_view text, const Json* schema,
                                               std::string_view keyword) {
  auto it = patterns_.find(text);
  if (it != patterns_.end()) return it->second.get();
  if (const auto lookahead = first_lookahead(text)) {
    TRY(const Automaton* ahead, pattern(lookahead->ahead, schema, keyword));
    TRY(const Automaton* rest, pattern(lookahead->rest, schema, keyword));
    auto both = combine(*rest, *ahead, lookahead->negative ? Combine::difference : Combine::intersection,
                        kPatternStatesMax);
    if (!both)
      return refuse(schema, keyword,
                    "'{}' needs more than {} states; lower its counts, or use simpler classes", text,
                    kPatternStatesMax);
    TRY_VOID(work(100 * both->states.size(), schema, keyword));
    it = patterns_.emplace(text, std::make_unique<const Automaton>(*std::move(both))).first;
  } else {
    Grammar grammar;
    const auto expr = add_regex(grammar, text, RegexMatch::search, field_);
    if (!expr) return refuse(schema, keyword, "{}", expr.error().message);
    std::size_t cost = 0;
    auto automaton = regular_automaton(grammar, *expr, kPatternStatesMax, &cost);
    // Counts the work of the failed attempt, because the caller may continue without the automaton.
    if (!automaton) TRY_VOID(work(cost / 6 + 100'000, schema, keyword));
    if (!automaton)
      return refuse(schema, keyword,
                    "'{}' needs more than {} states; lower its counts, or use simpler classes", text,
                    kPatternStatesMax);
    TRY_VOID(work(cost / 6 + 100 * automaton->states.size(), schema, keyword));
    it = patterns_.emplace(text, std::make_unique<const Automaton>(*std::move(automaton))).first;
  }
  return it->second.get();
}

std::optional<std::string> SchemaReader::only_pattern(const Facts& facts) const {
  const bool excludes =
      std::ranges::any_of(facts.excluded, [](const Json* value) { return value->is(Json::Kind::string); });
  if (excludes || facts.patterns.size() + facts.formats.size() != 1) return std::nullopt;
  if (facts.patterns.empty()) {
    const auto of_format = format_pattern(facts.formats[0]);
    return of_format ? std::optional(whole(*of_format)) : std::nullopt;
  }
  if (facts.patterns[0].negated || first_lookahead(text_of(facts.patterns[0]))) return std::nullopt;
  return text_of(facts.patterns[0]);
}

Result<const Automaton*> SchemaReader::contents(const Facts& facts) {
  std::vector<std::string> excluded;
  for (const Json* value : facts.excluded)
    if (value->is(Json::Kind::string)) excluded.push_back(value->text);
  if (facts.patterns.empty() && facts.formats.empty() && excluded.empty()) return nullptr;
  std::string key;
  for (const Facts::Pattern& p : facts.patterns)
    key += fmt::format("{}{} {}", p.negated ? '-' : '+', text_of(p).size(), text_of(p));
  for (const std::string_view name : facts.formats) key += fmt::format("f{} {}", name.size(), name);
  for (const std::string& text : excluded) key += fmt::format("x{} {}", text.size(), text);
  if (const auto known = contents_.find(key); known != contents_.end()) return known->second.get();

  std::optional<Automaton> all;
  {
    Grammar grammar;
    all = regular_automaton(grammar, grammar.repeat(content_character(grammar), 0, kUnbounded),
                            kPatternStatesMax);
  }
  const auto narrow = [&](const Automaton& other, Combine how, const Json* schema,
                          std::string_view keyword) -> Result<void> {
    all = combine(*all, other, how, kDfaStatesMax);
    if (!all)
      return refuse(
          schema, keyword,
          "together with the other keywords of the string it needs more than {} states; remove one of them",
          kDfaStatesMax);
    return work(60 * all->states.size(), schema, keyword);
  };
  for (const Facts::Pattern& p : facts.patterns) {
    TRY(const Automaton* automaton, pattern(text_of(p), p.schema, "pattern"));
    TRY_VOID(
        narrow(*automaton, p.negated ? Combine::difference : Combine::intersection, p.schema, "pattern"));
  }
  for (const std::string_view name : facts.formats) {
    TRY_VOID(narrow(format_automaton(name), Combine::intersection, facts.about, "format"));
  }
  if (!excluded.empty()) {
    const Json* first = facts.excluded[0];
    TRY_VOID(work(trie_bytes(excluded), first, ""));
    const Automaton words = automaton_of(std::move(excluded));
    if (words.states.size() > kDfaStatesMax)
      return refuse(first, "", "the excluded texts need more than {} states; exclude fewer", kDfaStatesMax);
    TRY_VOID(narrow(words, Combine::difference, first, ""));
  }
  return contents_.emplace(std::move(key), std::make_unique<const Automaton>(*std::move(all)))
      .first->second.get();
}

Result<std::optional<Automaton>> SchemaReader::contents_of_length(const Facts& facts) {
  TRY(const Automaton* all, contents(facts));
  if (!all) return std::optional<Automaton>{};
  const LengthRange wanted = facts.length;
  if (wanted.contains(lengths_of(*all))) return std::optional(*all);
  auto cut = of_length(*all, wanted, kDfaStatesMax);
  if (!cut) return too_many_lengths(facts);
  TRY_VOID(work(10 * cut->states.size(), facts.about, ""));
  return cut;
}

std::unexpected<Error> SchemaReader::too_many_lengths(const Facts& facts) const {
  std::string_view keyword = facts.length.max == kUnbounded ? "minLength" : "maxLength";
  // If minLength or maxLength is in another schema that also applies, the error names no keyword.
  if (!facts.about->find(keyword)) keyword = "";
  return refuse(
      facts.about, keyword,
      "together with the other keywords of the string it needs more than {} states; remove one of them",
      kDfaStatesMax);
}

}  // namespace octavo::grammar
