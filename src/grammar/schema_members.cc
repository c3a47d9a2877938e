// The members of an object, in the order of the schema or in any.
#include <algorithm>
#include <array>
#include <bit>

#include "grammar/key_table.h"
#include "grammar/limits.h"
#include "grammar/schema_writer.h"

namespace octavo::grammar {

namespace {

// The names of an object's properties as they are written, quotes included, cut where they part.
struct NameTree {
  struct Node {
    std::string text;                     // behind the parent's
    std::vector<std::uint32_t> children;  // empty: the end of a name
    std::vector<std::uint32_t> names;     // that go through here, rising
  };
  std::vector<Node> nodes;  // the first is the root

  bool complete = true;  // false: too many beginnings of names

  explicit NameTree(const std::vector<std::string>& names) {
    std::vector<std::uint32_t> order(names.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::uint32_t i) -> const std::string& { return names[i]; });
    // These names, sorted, go through the node; the first `depth` bytes of them are read there.
    struct Open {
      std::uint32_t node;
      std::span<const std::uint32_t> sorted;
      std::size_t depth;
    };
    nodes.emplace_back();
    std::vector<Open> work{{0, order, 0}};
    for (std::size_t beginnings = 0; !work.empty() && complete;) {
      auto [node, sorted, depth] = work.back();
      work.pop_back();
      beginnings += sorted.size();
      complete = beginnings <= 4 * kGraphNodesMax;
      nodes[node].names.assign(sorted.begin(), sorted.end());
      std::ranges::sort(nodes[node].names);
      while (!sorted.empty() && depth < names[sorted[0]].size()) {
        const auto last = std::ranges::find_if(
            sorted, [&](std::uint32_t i) { return names[i][depth] != names[sorted[0]][depth]; });
        const auto group = sorted.first(static_cast<std::size_t>(last - sorted.begin()));
        const std::string_view first = std::string_view(names[group.front()]).substr(depth),
                               end = std::string_view(names[group.back()]).substr(depth);
        const auto common = static_cast<std::size_t>(std::ranges::mismatch(first, end).in1 - first.begin());
        const auto child = static_cast<std::uint32_t>(nodes.size());
        nodes.emplace_back().text = first.substr(0, common);
        nodes[node].children.push_back(child);
        work.push_back({child, group, depth + common});
        sorted = sorted.subspan(group.size());
      }
    }
  }
};

}  // namespace

std::string SchemaWriter::written_name(std::string_view name) {
  return fmt::format("\"{}\"", json_escape(name));
}

ExprId SchemaWriter::value_of(RuleId value) { return g_.sequence({colon(), g_.call(value)}); }

std::optional<ExprId> SchemaWriter::rest_of_members(const ObjectShape& shape, std::uint32_t count) {
  // A name that is not listed and comes twice counts twice.
  const std::uint32_t least = count >= shape.members_min ? 0 : shape.members_min - count;
  const bool bounded = shape.members_max != kUnbounded;
  if (bounded && count + least > shape.members_max) return std::nullopt;
  const std::uint32_t most = bounded ? shape.members_max - count : kUnbounded;
  const ExprId none = count == 0 ? g_.empty() : space();
  if (!shape.others || most == 0) return least == 0 ? std::optional(none) : std::nullopt;
  const ExprId more = g_.sequence({comma(), *shape.others});
  if (count > 0) return g_.sequence({g_.repeat(more, least, most), space()});
  const ExprId some = g_.sequence(
      {*shape.others, g_.repeat(more, least > 0 ? least - 1 : 0, bounded ? most - 1 : most), space()});
  return least > 0 ? some : g_.choice({g_.empty(), some});
}

Result<ExprId> SchemaWriter::members_in_order(const Facts& facts, const ObjectShape& shape) {
  const auto n = static_cast<std::uint32_t>(shape.properties.size());
  const bool bounded = shape.members_max != kUnbounded;
  // Counts of members beyond what matters are one.
  const std::uint32_t top =
      std::min(n, std::max<std::uint32_t>(1, bounded ? shape.members_max : shape.members_min));
  std::vector<std::string> names;
  for (const Property& property : shape.properties) names.push_back(written_name(property.name));
  const NameTree tree(names);
  std::vector<ExprId> begins, tails, values;  // the first byte of each node's text, and the others
  for (const NameTree::Node& node : tree.nodes) {
    const auto first = static_cast<unsigned char>(node.text.empty() ? '\0' : node.text[0]);
    begins.push_back(g_.byte_range(first, first));
    tails.push_back(g_.literal(node.text.empty() ? "" : node.text.substr(1)));
  }
  for (const Property& property : shape.properties) values.push_back(value_of(property.value));
  // The first required property from each on; n: none.
  std::vector<std::uint32_t> next_required(n + std::size_t{1}, n);
  for (std::uint32_t i = n; i-- > 0;)
    next_required[i] = shape.properties[i].required ? i : next_required[i + 1];

  // Node (kBetween, i, count): the properties before i are decided and `count` members are written. Node
  // (name, i, count): a name has been read up to this node of the name tree; i is the first property that it
  // may be, which determines the others. So for each count there are only as many nodes as the names have
  // branches. (name | kRead, ..): the whole name has been read.
  constexpr std::uint32_t kBetween = UINT32_MAX, kRead = 1u << 31;
  KeyTable nodes;
  const auto node = [&](std::uint32_t name, std::uint32_t i, std::uint32_t count) {
    return nodes.number(std::array{name, i, count});
  };
  const ExprId empty = g_.empty(), comma_before = comma();
  Graph graph;
  node(kBetween, 0, 0);
  std::vector<std::pair<std::uint32_t, ExprId>> ends;
  for (std::uint32_t from = 0; from < nodes.size(); ++from) {
    if (nodes.size() > kGraphNodesMax || !tree.complete)
      return reader_.refuse(facts.about, "properties", "more than {} states of one object", kGraphNodesMax);
    const std::uint32_t name = nodes[from][0], i = nodes[from][1], count = nodes[from][2];
    if (name == kBetween) {
      const bool more = i < n && !(bounded && count == shape.members_max) &&
                        (shape.others || count + (n - i) >= shape.members_min);
      if (more)
        graph.arcs.push_back(
            {from, node(kRead, i, std::min(count + 1, top)), count == 0 ? empty : comma_before});
      if (next_required[i] < n) continue;
      if (const auto rest = rest_of_members(shape, count)) ends.emplace_back(from, *rest);
      continue;
    }
    const NameTree::Node& part = tree.nodes[name & ~kRead];
    if (part.children.empty()) {
      graph.arcs.push_back({from, node(kBetween, i + 1, count), g_.sequence({tails[name], values[i]})});
      continue;
    }
    if (!(name & kRead) && part.text.size() > 1) {
      graph.arcs.push_back({from, node(name | kRead, i, count), tails[name]});
      continue;
    }
    for (const std::uint32_t child : part.children) {
      const std::vector<std::uint32_t>& below = tree.nodes[child].names;
      const auto first = std::ranges::lower_bound(below, i);
      if (first != below.end() && *first <= next_required[i])
        graph.arcs.push_back({from, node(child, *first, count), begins[child]});
    }
  }
  const auto end = static_cast<std::uint32_t>(nodes.size());
  graph.nodes = end + 1;
  graph.accepting = {end};
  for (const auto& [from, rest] : ends) graph.arcs.push_back({from, end, rest});
  TRY_VOID(reader_.work(15 * graph.arcs.size(), facts.about, "properties"));
  return g_.graph(std::move(graph));
}

Result<ExprId> SchemaWriter::members_in_any_order(const Facts&, const ObjectShape& shape) {
  // Node: the set of properties written.
  const std::uint32_t sets = 1u << shape.properties.size();
  Graph graph;
  graph.nodes = sets + 1;
  graph.accepting = {sets};
  for (std::uint32_t set = 0; set < sets; ++set) {
    bool complete = true;
    const auto count = static_cast<std::uint32_t>(std::popcount(set));
    for (std::size_t i = 0; i < shape.properties.size(); ++i) {
      const Property& property = shape.properties[i];
      if (set >> i & 1) continue;
      complete = complete && !property.required;
      const ExprId text = g_.sequence({g_.literal(written_name(property.name)), value_of(property.value)});
      graph.arcs.push_back({set, set | 1u << i, count == 0 ? text : g_.sequence({comma(), text})});
    }
    if (!complete) continue;
    if (const auto rest = rest_of_members(shape, count)) graph.arcs.push_back({set, sets, *rest});
  }
  return g_.graph(std::move(graph));
}

}  // namespace octavo::grammar
