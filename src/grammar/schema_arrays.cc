#include <algorithm>
#include <vector>

#include "grammar/key_table.h"
#include "grammar/limits.h"
#include "grammar/schema_writer.h"

namespace octavo::grammar {

namespace {

Goal opposite(Goal goal) {
  goal.kind = goal.kind == Goal::Kind::fails ? Goal::Kind::holds : Goal::Kind::fails;
  return goal;
}

}  // namespace

ExprId SchemaWriter::array_of(ExprId item, std::uint32_t min, std::uint32_t max) {
  std::vector<ExprId> branches;
  if (min == 0) branches.push_back(g_.sequence({g_.literal("["), space(), g_.literal("]")}));
  if (max > 0) {
    const ExprId more =
        g_.repeat(g_.sequence({comma(), item}), min - (min > 0), max == kUnbounded ? max : max - 1);
    branches.push_back(g_.sequence({g_.literal("["), space(), item, more, space(), g_.literal("]")}));
  }
  return g_.choice(std::move(branches));
}

Result<ExprId> SchemaWriter::array(const Facts& facts) {
  return facts.unique_items && facts.item_count.max > 1 ? array_of_different(facts) : array_of_any(facts);
}

Result<ExprId> SchemaWriter::array_of_any(const Facts& facts) {
  if (!facts.contains.empty()) return array_containing(facts);
  const std::size_t prefix = reader_.prefix_size(facts);
  std::uint32_t min = facts.item_count.min, max = facts.item_count.max;
  if (prefix > kGraphNodesMax)
    return reader_.refuse(facts.arrays[0], "prefixItems", "lists more than {} items; list fewer",
                          kGraphNodesMax);
  std::vector<RuleId> items;
  for (std::size_t i = 0; i < prefix && i < max; ++i) {
    const Goals goals = reader_.item_goals(facts, i);
    if (SchemaReader::is_false(goals)) max = std::min(max, static_cast<std::uint32_t>(i));
    TRY(items.emplace_back(), rule_for(goals));
  }
  const Goals rest_goals = reader_.item_goals(facts, prefix);
  if (SchemaReader::is_false(rest_goals)) max = std::min(max, static_cast<std::uint32_t>(prefix));
  if (min > max) return g_.nothing();
  TRY(const RuleId rest, rule_for(rest_goals));
  if (prefix == 0) return array_of(g_.call(rest), min, max);

  // Node i of the graph means that i items were written. After prefixItems, one node with a loop reads all
  // further items.
  Graph graph;
  const auto fixed = static_cast<std::uint32_t>(std::min<std::size_t>(prefix, max));
  const std::uint32_t end = fixed + 1;
  graph.nodes = fixed + 2;
  graph.accepting = {end};
  for (std::uint32_t i = 0; i < fixed; ++i) {
    const ExprId item = g_.call(items[i]);
    graph.arcs.push_back({i, i + 1, i == 0 ? item : g_.sequence({comma(), item})});
    if (i >= min) graph.arcs.push_back({i, end, i == 0 ? g_.empty() : space()});
  }
  const std::uint32_t more_min = min > fixed ? min - fixed : 0,
                      more_max = max == kUnbounded ? max : max - fixed;
  const ExprId more = g_.repeat(g_.sequence({comma(), g_.call(rest)}), more_min, more_max);
  graph.arcs.push_back({fixed, end, g_.sequence({more, space()})});
  return g_.sequence({g_.literal("["), space(), g_.graph(std::move(graph)), g_.literal("]")});
}

// Returns an expression for arrays that have enough matching items for each `contains`. A node of the graph
// represents the number of items so far and, for each condition, the number of matching items. With
// maxContains, all other items must fail the condition.
Result<ExprId> SchemaWriter::array_containing(const Facts& facts) {
  const std::size_t wanted = facts.contains.size();
  // Number of items up to which the graph counts. For later items, the exact number makes no difference.
  const auto levels = static_cast<std::uint32_t>(
      std::max<std::size_t>({reader_.prefix_size(facts) + 1, facts.item_count.min,
                             facts.item_count.max == kUnbounded ? 0 : facts.item_count.max}));
  constexpr std::uint32_t kCountedMax = 200, kNodesMax = 4000;
  const auto refuse = [&] {
    return reader_.refuse(
        facts.contains[0].goal.schema, "",
        "'contains' is supported with at most {} counted items, 3 conditions and {} states; lower "
        "'minContains' or 'maxContains'",
        kCountedMax, kNodesMax);
  };
  if (wanted > 3 || levels > kCountedMax) return refuse();
  // For each condition, the number of matching items up to which the graph counts. More matching items make
  // no difference or are not allowed.
  std::vector<std::uint32_t> most;
  for (const Facts::Contained& c : facts.contains) {
    most.push_back(c.max == UINT32_MAX ? c.min : c.max);
    if (most.back() > kCountedMax) return refuse();
  }
  KeyTable nodes;
  nodes.number(std::vector<std::uint32_t>(1 + wanted, 0));
  Graph graph;
  std::vector<std::uint32_t> ends;
  for (std::uint32_t from = 0; from < nodes.size(); ++from) {
    if (nodes.size() > kNodesMax) return refuse();
    const std::vector<std::uint32_t> key(nodes[from].begin(), nodes[from].end());
    const std::uint32_t count = key[0];
    bool met = count >= facts.item_count.min;
    for (std::size_t i = 0; i < wanted; ++i) met = met && key[i + 1] >= facts.contains[i].min;
    if (met) ends.push_back(from);
    if (count >= facts.item_count.max) continue;
    for (std::uint32_t now = 0; now < 1u << wanted; ++now) {
      std::vector<std::uint32_t> next = key;
      next[0] = std::min(count + 1, levels);
      Goals goals = reader_.item_goals(facts, count);
      bool allowed = true;
      for (std::size_t i = 0; i < wanted; ++i) {
        const Facts::Contained& c = facts.contains[i];
        const bool meets = now >> i & 1, bounded = c.max != UINT32_MAX;
        if (meets || bounded) goals.push_back(meets ? c.goal : opposite(c.goal));
        if (!meets) continue;
        allowed = allowed && (!bounded || key[i + 1] < c.max);
        next[i + 1] = std::min(key[i + 1] + 1, most[i]);
      }
      if (!allowed || SchemaReader::is_false(goals)) continue;
      TRY_VOID(reader_.work(15, facts.about, "contains"));
      TRY(const RuleId rule, rule_for(std::move(goals)));
      const ExprId item = g_.call(rule);
      graph.arcs.push_back({from, nodes.number(next), count == 0 ? item : g_.sequence({comma(), item})});
    }
  }
  const auto end = static_cast<std::uint32_t>(nodes.size());
  graph.nodes = end + 1;
  graph.accepting = {end};
  for (const std::uint32_t from : ends) graph.arcs.push_back({from, end, space()});
  return g_.sequence({g_.literal("["), space(), g_.graph(std::move(graph)), g_.literal("]")});
}

// If all possible items are listed, returns an expression for arrays in which each of them occurs at most
// once. Otherwise the matcher enforces uniqueItems.
Result<ExprId> SchemaWriter::array_of_different(const Facts& facts) {
  const std::size_t prefix = reader_.prefix_size(facts);
  TRY(const auto values, known_values(reader_.item_goals(facts, prefix)));
  const bool alike = prefix == 0 && facts.contains.empty();
  const std::size_t count = values ? values->size() : 0;
  if (alike && values && count <= kAnyOrderMax) {
    std::vector<ExprId> items;
    for (const Json* value : *values) items.push_back(value_text(*value));
    const ExprId some = each_once(items, facts.item_count.min, facts.item_count.max);
    return g_.sequence({g_.literal("["), space(), some, g_.literal("]")});
  }
  if (options_.refuse_unique)
    return reader_.refuse(
        facts.unique_items, "uniqueItems",
        "is supported if 'items' lists at most {} values ('enum'), without 'prefixItems' and "
        "'contains'; otherwise remove it",
        kAnyOrderMax);
  Facts some = facts;
  if (values) some.item_count.max = std::min(some.item_count.max, static_cast<std::uint32_t>(prefix + count));
  TRY(const ExprId array, array_of_any(some));
  const RuleId rule = g_.rule("", array);
  g_.rules[rule].unique_items = true;
  return g_.call(rule);
}

Result<std::optional<std::vector<const Json*>>> SchemaWriter::known_values(const Goals& goals) {
  static const std::vector<Json> kWords = [] {
    std::vector<Json> words(3);
    words[1].kind = words[2].kind = Json::Kind::boolean;
    words[2].boolean = true;
    return words;
  }();
  TRY(const std::vector<Facts> alternatives, reader_.read(goals));
  std::vector<const Json*> found;
  for (const Facts& facts : alternatives) {
    std::vector<const Json*> candidates;
    for (const Json& word : kWords) candidates.push_back(&word);
    if (facts.values)
      candidates = *facts.values;
    else if (facts.types & ~unsigned{kNull | kBoolean})
      return std::nullopt;
    Facts rest = facts;
    rest.values.reset();
    for (const Json* value : candidates) {
      TRY(const bool fits, reader_.satisfies(*value, rest));
      TRY_VOID(reader_.work(1 + found.size() / 8, facts.about, ""));
      if (fits && std::ranges::none_of(found, [&](const Json* other) { return equal(*other, *value); }))
        found.push_back(value);
    }
  }
  return found;
}

}  // namespace octavo::grammar
