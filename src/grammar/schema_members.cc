// Converts the members of an object to a grammar, in the schema's order or in any order.
#include <algorithm>
#include <array>

#include "grammar/key_table.h"
#include "grammar/limits.h"
#include "grammar/schema_writer.h"

namespace octavo::grammar {

namespace {

// Trie of the quoted names of an object's properties.
struct NameTree {
  struct Node {
    // text after the text of the parent
    std::string text;
    std::vector<std::uint32_t> children;  // indices of the child nodes; empty at the end of a name
    // indices of the properties whose names end below this node, ascending
    std::vector<std::uint32_t> names;
  };
  std::vector<Node> nodes;

  // false: there are too many nodes
  bool complete = true;

  explicit NameTree(const std::vector<std::string>& names) {
    std::vector<std::uint32_t> order(names.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::uint32_t i) -> const std::string& { return names[i]; });
    // A node whose children are not added yet. sorted: properties below it, by name. depth: length of the
    // text that all their names begin with.
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
  // The same unlisted name may occur twice in the text. Each occurrence counts as a member.
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

// A node of the graph is one of the following. `count` members have been written so far.
// * (kBetween, i, count): before a member. All properties before i are either written or left out.
// * (name, i, count): inside a name, at node `name` of the name tree. i is the first property whose name can
//   still follow, so there is only one graph node for each node of the tree and count.
// * (name | kRead, i, count): after a name.
class SchemaWriter::MembersInOrder {
 public:
  MembersInOrder(SchemaWriter& writer, const ObjectShape& shape)
      : writer_(writer), g_(writer.g_), shape_(shape), tree_(names_of(shape)) {
    for (const NameTree::Node& node : tree_.nodes) {
      const auto first = static_cast<unsigned char>(node.text.empty() ? '\0' : node.text[0]);
      begins_.push_back(g_.byte_range(first, first));
      tails_.push_back(g_.literal(node.text.empty() ? "" : node.text.substr(1)));
    }
    next_required_.assign(n_ + std::size_t{1}, n_);
    for (std::uint32_t i = n_; i-- > 0;)
      next_required_[i] = shape.properties[i].required ? i : next_required_[i + 1];
  }

  // Returns nullopt for more than kGraphNodesMax nodes.
  std::optional<Graph> graph() {
    node(kBetween, 0, 0);
    for (std::uint32_t from = 0; from < nodes_.size(); ++from) {
      if (nodes_.size() > kGraphNodesMax || !tree_.complete) return std::nullopt;
      const std::uint32_t name = nodes_[from][0], i = nodes_[from][1], count = nodes_[from][2];
      if (name == kBetween)
        add_between(from, i, count);
      else
        add_name(from, name, i, count);
    }
    const auto end = static_cast<std::uint32_t>(nodes_.size());
    graph_.nodes = end + 1;
    graph_.accepting = {end};
    for (const auto& [from, rest] : ends_) graph_.arcs.push_back({from, end, rest});
    return std::move(graph_);
  }

 private:
  static constexpr std::uint32_t kBetween = UINT32_MAX, kRead = 1u << 31;

  static std::vector<std::string> names_of(const ObjectShape& shape) {
    std::vector<std::string> names;
    for (const Property& property : shape.properties) names.push_back(written_name(property.name));
    return names;
  }
  std::uint32_t node(std::uint32_t name, std::uint32_t i, std::uint32_t count) {
    return nodes_.number(std::array{name, i, count});
  }

  void add_between(std::uint32_t from, std::uint32_t i, std::uint32_t count) {
    const bool more = i < n_ && !(bounded_ && count == shape_.members_max) &&
                      (shape_.others || count + (n_ - i) >= shape_.members_min);
    if (more)
      graph_.arcs.push_back(
          {from, node(kRead, i, std::min(count + 1, top_)), count == 0 ? empty_ : comma_before_});
    if (next_required_[i] < n_) return;
    if (const auto rest = writer_.rest_of_members(shape_, count)) ends_.emplace_back(from, *rest);
  }

  void add_name(std::uint32_t from, std::uint32_t name, std::uint32_t i, std::uint32_t count) {
    const NameTree::Node& part = tree_.nodes[name & ~kRead];
    if (part.children.empty()) {
      const ExprId value = writer_.value_of(shape_.properties[i].value);
      graph_.arcs.push_back({from, node(kBetween, i + 1, count), g_.sequence({tails_[name], value})});
    } else if (!(name & kRead) && part.text.size() > 1) {
      graph_.arcs.push_back({from, node(name | kRead, i, count), tails_[name]});
    } else {
      for (const std::uint32_t child : part.children) {
        const std::vector<std::uint32_t>& below = tree_.nodes[child].names;
        const auto first = std::ranges::lower_bound(below, i);
        if (first != below.end() && *first <= next_required_[i])
          graph_.arcs.push_back({from, node(child, *first, count), begins_[child]});
      }
    }
  }

  SchemaWriter& writer_;
  Grammar& g_;
  const ObjectShape& shape_;
  const NameTree tree_;
  const std::uint32_t n_ = static_cast<std::uint32_t>(shape_.properties.size());
  const bool bounded_ = shape_.members_max != kUnbounded;
  // number of members up to which the graph counts; above it, the exact number makes no difference
  const std::uint32_t top_ =
      std::min(n_, std::max<std::uint32_t>(1, bounded_ ? shape_.members_max : shape_.members_min));
  // for each node of the name tree: the first byte of its text, and the rest of its text
  std::vector<ExprId> begins_, tails_;
  // for each property, the index of the first required property from it on; n_: no further property is
  // required
  std::vector<std::uint32_t> next_required_;
  const ExprId empty_ = g_.empty(), comma_before_ = writer_.comma();
  KeyTable nodes_;
  Graph graph_;
  std::vector<std::pair<std::uint32_t, ExprId>> ends_;
};

Result<ExprId> SchemaWriter::members_in_order(const Facts& facts, const ObjectShape& shape) {
  auto graph = MembersInOrder(*this, shape).graph();
  if (!graph)
    return reader_.refuse(facts.about, "properties",
                          "the members of one object need more than {} states; list fewer optional members",
                          kGraphNodesMax);
  TRY_VOID(reader_.work(15 * graph->arcs.size(), facts.about, "properties"));
  return g_.graph(*std::move(graph));
}

ExprId SchemaWriter::members_in_any_order(const ObjectShape& shape) {
  AnyOrder members{
      {}, {}, {}, g_.call(separator()), std::max<std::uint32_t>(1, shape.members_min), shape.members_max};
  bool may_be_empty = shape.members_min == 0;
  for (const Property& property : shape.properties) {
    const auto [member, fresh] = member_rules_.try_emplace({property.name, property.value});
    if (fresh) {
      const ExprId name = g_.literal(written_name(property.name));
      member->second = g_.rule("", g_.sequence({name, value_of(property.value)}));
    }
    members.parts.push_back(g_.call(member->second));
    members.required.push_back(property.required);
    may_be_empty = may_be_empty && !property.required;
  }
  if (shape.others) members.others = g_.call(g_.rule("", *shape.others));
  const ExprId some = g_.sequence({g_.any_order(std::move(members)), space()});
  return may_be_empty ? g_.choice({g_.empty(), some}) : some;
}

}  // namespace octavo::grammar
