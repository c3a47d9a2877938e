#include "grammar/structural_tag.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "grammar/json_value.h"
#include "grammar/lark.h"
#include "grammar/limits.h"
#include "grammar/regex.h"

namespace octavo::grammar {

namespace {

constexpr std::string_view kField = "structural_tag";

// Finds the first of several words in a text (Aho and Corasick 1975). word: index of the word that ends at
// the node; -1: no word ends there.
struct WordFinder {
  struct Node {
    std::array<std::uint32_t, 256> next{};
    std::uint32_t fallback = 0;
    int word = -1;
  };
  std::vector<Node> nodes{1};

  explicit WordFinder(const std::vector<std::string>& words) {
    for (std::size_t w = 0; w < words.size(); ++w) {
      std::uint32_t at = 0;
      for (const char c : words[w]) {
        const auto byte = static_cast<std::uint8_t>(c);
        if (nodes[at].next[byte] == 0) {
          nodes[at].next[byte] = static_cast<std::uint32_t>(nodes.size());
          nodes.emplace_back();
        }
        at = nodes[at].next[byte];
      }
      nodes[at].word = static_cast<int>(w);
    }
    std::vector<std::uint32_t> order{0};
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::uint32_t at = order[i];
      for (unsigned byte = 0; byte < 256; ++byte) {
        std::uint32_t& next = nodes[at].next[byte];
        const std::uint32_t through = at == 0 ? 0 : nodes[nodes[at].fallback].next[byte];
        if (next == 0) {
          next = through;
          continue;
        }
        nodes[next].fallback = through;
        if (nodes[next].word < 0) nodes[next].word = nodes[through].word;
        order.push_back(next);
      }
    }
  }
};

class Writer {
 public:
  Writer(Grammar& grammar, const JsonOptions& options) : g_(grammar), options_(options) {}

  // path: JSON pointer to the invalid value; "": the structural tag itself.
  template <class... Args>
  static std::unexpected<Error> refuse(std::string_view path, fmt::format_string<Args...> text,
                                       Args&&... args) {
    return invalid(kField, "structural tag{}{}: {}", path.empty() ? "" : ", at ", path,
                   fmt::format(text, std::forward<Args>(args)...));
  }

  Result<ExprId> legacy(const Json& spec) {
    TRY(const Json* structures, member(spec, "structures", Json::Kind::array, ""));
    std::vector<Tag> tags;
    for (std::size_t i = 0; i < structures->items.size(); ++i) {
      const Json& item = structures->items[i];
      const std::string path = fmt::format("/structures/{}", i);
      TRY(const Json* begin, member(item, "begin", Json::Kind::string, path));
      TRY(const Json* end, member(item, "end", Json::Kind::string, path));
      TRY(const Json* schema, member(item, "schema", path));
      TRY(const RuleId content, add_json_schema(g_, to_text(*schema), options_, kField));
      tags.push_back({begin->text, g_.sequence({g_.call(content), g_.literal(end->text)}), {}});
    }
    TRY(const auto triggers, strings(spec, "triggers", ""));
    return triggered(tags, triggers, false, false, "");
  }

  // end: text that follows the format; free text ends when it occurs.
  Result<ExprId> format(const Json& f, const std::string& path, const std::string& end, int depth) {
    if (depth > kNestingMax)
      return refuse(path, "formats are nested more than {} deep; flatten them", kNestingMax);
    TRY(const Json* type, member(f, "type", Json::Kind::string, path));
    const std::string& name = type->text;
    TRY_VOID(nothing_unknown(f, name, path));
    if (name == "const_string") {
      TRY(const Json* value, member(f, "value", Json::Kind::string, path));
      return g_.literal(value->text);
    }
    if (name == "json_schema") {
      TRY(const Json* schema, member(f, "json_schema", path));
      TRY(const RuleId rule, add_json_schema(g_, to_text(*schema), options_, kField));
      return g_.call(rule);
    }
    if (name == "regex") {
      TRY(const Json* pattern, member(f, "pattern", Json::Kind::string, path));
      return add_regex(g_, pattern->text, RegexMatch::full, kField);
    }
    if (name == "grammar") {
      TRY(const Json* text, member(f, "grammar", Json::Kind::string, path));
      TRY(const RuleId rule, add_ebnf_or_lark(g_, text->text, kField));
      return g_.call(rule);
    }
    if (name == "any_text") return free_text(end);
    if (name == "token") return token(f, path);
    if (name == "optional" || name == "star" || name == "plus") {
      TRY(const Json* content, member(f, "content", path));
      TRY(const ExprId body, format(*content, path + "/content", name == "optional" ? end : "", depth + 1));
      return g_.repeat(body, name == "plus" ? 1 : 0, name == "optional" ? 1 : kUnbounded);
    }
    if (name == "sequence" || name == "or") {
      TRY(const Json* elements, member(f, "elements", Json::Kind::array, path));
      std::vector<ExprId> parts;
      for (std::size_t i = 0; i < elements->items.size(); ++i) {
        const bool last = name == "or" || i + 1 == elements->items.size();
        TRY(parts.emplace_back(),
            format(elements->items[i], fmt::format("{}/elements/{}", path, i), last ? end : "", depth + 1));
      }
      if (parts.empty()) return refuse(path, "'elements' is empty; add a format");
      return name == "or" ? g_.choice(std::move(parts)) : g_.sequence(std::move(parts));
    }
    if (name == "tag") {
      TRY(const Tag t, tag(f, path, depth));
      return whole(t);
    }
    if (name == "token_triggered_tags") {
      TRY(const auto all, tags(f, path, depth));
      return token_triggered(f, all, path);
    }
    if (name == "triggered_tags") {
      TRY(const auto all, tags(f, path, depth));
      TRY(const auto triggers, strings(f, "triggers", path));
      return triggered(all, triggers, flag(f, "at_least_one"), flag(f, "stop_after_first"), path);
    }
    if (name == "tags_with_separator") {
      TRY(const auto all, tags(f, path, depth));
      TRY(const Json* separator, member(f, "separator", Json::Kind::string, path));
      std::vector<ExprId> branches;
      for (const Tag& t : all) branches.push_back(whole(t));
      const ExprId one = g_.choice(std::move(branches));
      const std::uint32_t more = flag(f, "stop_after_first") ? 0 : kUnbounded;
      const ExprId list =
          g_.sequence({one, g_.repeat(g_.sequence({g_.literal(separator->text), one}), 0, more)});
      return flag(f, "at_least_one") ? list : g_.optional(list);
    }
    return refuse(path, "the type '{}' is not supported; supported are {}", name,
                  fmt::join(std::views::keys(members_by_type()), ", "));
  }

 private:
  struct Tag {
    std::string begin;
    ExprId rest = 0;
    std::optional<TokenAtom> begin_token;  // replaces `begin`
  };
  ExprId whole(const Tag& t) {
    return g_.sequence({t.begin_token ? g_.token(*t.begin_token) : g_.literal(t.begin), t.rest});
  }

  // Returns an error for unknown members, because they might be constraints. Accepts values that cannot have
  // an effect (null, false, []).
  Result<void> nothing_unknown(const Json& f, std::string_view name, const std::string& path) const {
    const auto known = members_by_type().find(name);
    // The type is unknown; the caller reports this.
    if (known == members_by_type().end()) return {};
    for (const auto& [key, value] : f.members) {
      const bool silent =
          value.is(Json::Kind::null) || (value.is(Json::Kind::array) && value.items.empty()) ||
          (value.is(Json::Kind::boolean) && !value.boolean) || (key == "style" && value.text == "json");
      if (key == "type" || silent || std::ranges::find(known->second, key) != known->second.end()) continue;
      return refuse(path, "the type '{}' has no member '{}'; remove it (members: type{}{})", name, key,
                    known->second.empty() ? "" : ", ", fmt::join(known->second, ", "));
    }
    return {};
  }

  using Members = std::map<std::string_view, std::vector<std::string_view>>;
  static const Members& members_by_type() {
    static const Members kMembers = {
        {"const_string", {"value"}},
        {"json_schema", {"json_schema"}},
        {"regex", {"pattern"}},
        {"grammar", {"grammar"}},
        {"any_text", {}},
        {"token", {"token"}},
        {"optional", {"content"}},
        {"star", {"content"}},
        {"plus", {"content"}},
        {"sequence", {"elements"}},
        {"or", {"elements"}},
        {"tag", {"begin", "content", "end"}},
        {"triggered_tags", {"triggers", "tags", "at_least_one", "stop_after_first"}},
        {"token_triggered_tags", {"trigger_tokens", "tags", "at_least_one", "stop_after_first"}},
        {"tags_with_separator", {"tags", "separator", "at_least_one", "stop_after_first"}},
    };
    return kMembers;
  }

  static std::optional<TokenAtom> atom(const Json& value) {
    if (value.is(Json::Kind::string)) return TokenAtom{value.text, -1};
    std::int32_t id = -1;
    const char* end = value.text.data() + value.text.size();
    if (value.is(Json::Kind::number) && std::from_chars(value.text.data(), end, id).ptr == end && id >= 0)
      return TokenAtom{"", id};
    return std::nullopt;
  }
  Result<TokenAtom> token_atom(const Json& f, const std::string& path) const {
    const Json* value = f.find("token");
    const auto found = value ? atom(*value) : std::nullopt;
    if (!found) return refuse(path, "'token' must be the text or the number of a token");
    return *found;
  }
  Result<ExprId> token(const Json& f, const std::string& path) {
    TRY(const TokenAtom found, token_atom(f, path));
    return g_.token(found);
  }

  // Returns an expression for free text in which special tokens begin tags.
  Result<ExprId> token_triggered(const Json& f, const std::vector<Tag>& tags, const std::string& path) {
    TRY(const Json* triggers, member(f, "trigger_tokens", Json::Kind::array, path));
    std::vector<ExprId> branches;
    for (const Tag& t : tags) {
      const bool triggered = t.begin_token && std::ranges::any_of(triggers->items, [&](const Json& trigger) {
                               return atom(trigger) == t.begin_token;
                             });
      if (!triggered)
        return refuse(path, "a tag does not begin with a token of 'trigger_tokens'; add its token there");
      branches.push_back(whole(t));
    }
    const ExprId text = free_text("");
    const ExprId one = g_.sequence({g_.call(g_.rule("", g_.choice(std::move(branches))))});
    const std::uint32_t least = flag(f, "at_least_one") ? 1 : 0;
    if (flag(f, "stop_after_first")) return g_.sequence({text, g_.repeat(one, least, 1)});
    return g_.sequence({text, g_.repeat(g_.sequence({one, text}), least, kUnbounded)});
  }

  static Result<const Json*> member(const Json& object, std::string_view key, const std::string& path) {
    if (!object.is(Json::Kind::object)) return refuse(path, "must be an object with the member '{}'", key);
    if (const Json* value = object.find(key)) return value;
    return refuse(path, "the member '{}' is missing; add it", key);
  }
  static Result<const Json*> member(const Json& object, std::string_view key, Json::Kind kind,
                                    const std::string& path) {
    TRY(const Json* value, member(object, key, path));
    if (!value->is(kind))
      return refuse(path, "'{}' must be {}", key, kind == Json::Kind::string ? "a string" : "an array");
    return value;
  }
  static bool flag(const Json& f, std::string_view key) {
    const Json* value = f.find(key);
    return value && value->boolean;
  }
  Result<std::vector<std::string>> strings(const Json& f, std::string_view key,
                                           const std::string& path) const {
    TRY(const Json* list, member(f, key, Json::Kind::array, path));
    std::vector<std::string> out;
    for (const Json& item : list->items) {
      if (!item.is(Json::Kind::string) || item.text.empty())
        return refuse(path, "each item of '{}' must be a string that is not empty", key);
      out.push_back(item.text);
    }
    if (out.empty()) return refuse(path, "'{}' is empty; add a string", key);
    return out;
  }

  Result<Tag> tag(const Json& f, const std::string& path, int depth) {
    TRY(const Json* content, member(f, "content", path));
    const Json *begin = f.find("begin"), *end = f.find("end");
    Tag out;
    if (begin && begin->is(Json::Kind::object)) {
      TRY(out.begin_token, token_atom(*begin, path + "/begin"));
    } else {
      TRY(begin, member(f, "begin", Json::Kind::string, path));
      out.begin = begin->text;
    }
    // If `end` is a special token, free text needs no end text, because it cannot contain special tokens.
    const bool end_token = end && end->is(Json::Kind::object);
    if (!end_token) {
      TRY(end, member(f, "end", Json::Kind::string, path));
    }
    TRY(const ExprId inner, format(*content, path + "/content", end_token ? "" : end->text, depth + 1));
    ExprId closing = 0;
    if (end_token) {
      TRY(closing, token(*end, path + "/end"));
    } else {
      closing = g_.literal(end->text);
    }
    out.rest = g_.sequence({inner, closing});
    return out;
  }
  Result<std::vector<Tag>> tags(const Json& f, const std::string& path, int depth) {
    TRY(const Json* list, member(f, "tags", Json::Kind::array, path));
    std::vector<Tag> out;
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      TRY(out.emplace_back(), tag(list->items[i], fmt::format("{}/tags/{}", path, i), depth + 1));
    }
    if (out.empty()) return refuse(path, "'tags' is empty; add a tag");
    return out;
  }

  // Returns an expression for text that does not contain `end`. It may contain the beginning of `end`. If
  // `end` is "", any text matches.
  ExprId free_text(const std::string& end) {
    if (end.empty()) return g_.call(g_.rule("", g_.repeat(g_.byte_range(0, 255), 0, kUnbounded)));
    return g_.call(g_.rule("", g_.graph(text_graph(WordFinder({end})))));
  }

  // Returns a graph that reads text and has the nodes of `finder`. Nodes at which a word ends have no arcs
  // yet.
  Graph text_graph(const WordFinder& finder) {
    Graph graph;
    graph.nodes = static_cast<std::uint32_t>(finder.nodes.size());
    for (std::uint32_t n = 0; n < graph.nodes; ++n) {
      if (finder.nodes[n].word >= 0) continue;
      graph.accepting.push_back(n);
      std::map<std::uint32_t, ByteSet> targets;
      for (unsigned byte = 0; byte < 256; ++byte) targets[finder.nodes[n].next[byte]].add(byte);
      for (const auto& [target, bytes] : targets) graph.arcs.push_back({n, target, g_.bytes(bytes)});
    }
    return graph;
  }

  Result<ExprId> triggered(const std::vector<Tag>& tags, const std::vector<std::string>& triggers,
                           bool at_least_one, bool stop_after_first, const std::string& path) {
    const WordFinder finder(triggers);
    Graph graph = text_graph(finder);
    const auto text_nodes = graph.nodes;
    std::uint32_t after = 0;
    if (stop_after_first) {
      after = graph.nodes++;
    } else if (at_least_one) {
      // After the first tag, the text uses a second copy of the nodes, in which it may end.
      Graph second = text_graph(finder);
      after = graph.nodes;
      for (Graph::Arc arc : second.arcs) {
        arc.from += after;
        arc.to += after;
        graph.arcs.push_back(arc);
      }
      graph.nodes += second.nodes;
      if (at_least_one) graph.accepting.clear();
      for (const std::uint32_t n : second.accepting) graph.accepting.push_back(n + after);
    }
    if (stop_after_first) {
      if (at_least_one) graph.accepting.clear();
      graph.accepting.push_back(after);
    }
    for (std::uint32_t n = 0; n < graph.nodes; ++n) {
      const std::uint32_t at = n >= text_nodes ? n - text_nodes : n;
      if (at >= finder.nodes.size() || finder.nodes[at].word < 0 || (stop_after_first && n >= text_nodes))
        continue;
      const std::string& trigger = triggers[static_cast<std::size_t>(finder.nodes[at].word)];
      std::vector<ExprId> branches;
      for (const Tag& t : tags)
        if (!t.begin_token && t.begin.starts_with(trigger))
          branches.push_back(g_.sequence({g_.literal(t.begin.substr(trigger.size())), t.rest}));
      if (branches.empty())
        return refuse(path, "no tag begins with the trigger '{}'; add one, or remove the trigger", trigger);
      graph.arcs.push_back({n, after, g_.call(g_.rule("", g_.choice(std::move(branches))))});
    }
    for (const Tag& t : tags)
      if (t.begin_token || std::ranges::none_of(triggers, [&](const std::string& trigger) {
            return t.begin.starts_with(trigger);
          }))
        return refuse(path, "the tag '{}' begins with no trigger; add a trigger for it", t.begin);
    return g_.graph(std::move(graph));
  }

  Grammar& g_;
  const JsonOptions& options_;
};

}  // namespace

Result<Grammar> structural_tag_grammar(std::string_view spec, const JsonOptions& options) {
  TRY(const Json document, parse_json(spec, kField));
  Grammar grammar;
  Writer writer(grammar, options);
  const Json* format = document.find("format");
  TRY(const ExprId body, format ? writer.format(*format, "/format", "", 0) : writer.legacy(document));
  grammar.root = grammar.rule("the structural tag", body);
  return within_limits(std::move(grammar));
}

}  // namespace octavo::grammar
