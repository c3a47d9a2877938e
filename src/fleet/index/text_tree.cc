#include "fleet/index/text_tree.h"

#include <algorithm>
#include <utility>

namespace octavo::fleet {
namespace {

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t length = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(length), b.begin()).first - a.begin());
}

}  // namespace

TextTree::TextTree(std::size_t bytes_max) : bytes_max_(bytes_max) {}

// Returns the memory in bytes of a node: its edge, its entry in the parent's children, one holding, and the
// allocator's overhead.
std::size_t TextTree::cost(std::size_t edge_bytes) {
  constexpr std::size_t kAllocated = 48;
  return edge_bytes + sizeof(Node) + sizeof(Holding) + 2 * sizeof(std::pair<char, Index>) + kAllocated;
}

TextTree::Index TextTree::child(const Node& node, char first) const {
  const auto found = std::ranges::lower_bound(node.children, first, {}, &std::pair<char, Index>::first);
  return found != node.children.end() && found->first == first ? found->second : kNone;
}

void TextTree::match(std::string_view text, TextMatch& found) const {
  for (const EndpointId id : found.holders) found.bytes[id] = 0;
  found.holders.clear();
  found.bytes.resize(held_.size());
  std::size_t depth = 0;
  Index index = kNone;
  while (depth < text.size() && (index = child(nodes_[index], text[depth])) != kNone) {
    const Node& node = nodes_[index];
    const std::size_t shared = common_prefix(node.edge, text.substr(depth));
    for (Index at = node.holdings; at != kNone; at = holdings_[at].next) {
      if (depth == 0) found.holders.push_back(holdings_[at].endpoint);
      found.bytes[holdings_[at].endpoint] = depth + shared;
    }
    depth += shared;
    if (shared < node.edge.size()) return;
  }
}

TextTree::Index TextTree::add_node(Index parent, std::string_view edge) {
  if (free_nodes_.empty()) {
    free_nodes_.push_back(static_cast<Index>(nodes_.size()));
    nodes_.emplace_back();
  }
  const Index index = free_nodes_.back();
  free_nodes_.pop_back();
  nodes_[index].edge = edge;
  nodes_[index].parent = parent;
  auto& siblings = nodes_[parent].children;
  siblings.insert(std::ranges::lower_bound(siblings, edge.front(), {}, &std::pair<char, Index>::first),
                  {edge.front(), index});
  return index;
}

// Splits an edge: the node keeps the first `at` bytes. A new child gets the remaining bytes, the node's
// children and a holding for each of the node's endpoints.
void TextTree::split(Index index, std::size_t at) {
  auto children = std::exchange(nodes_[index].children, {});
  const std::string rest = nodes_[index].edge.substr(at);
  nodes_[index].edge.resize(at);
  nodes_[index].edge.shrink_to_fit();
  const Index below = add_node(index, rest);
  for (const auto& [first, grandchild] : children) nodes_[grandchild].parent = below;
  nodes_[below].children = std::move(children);
  for (Index above = nodes_[index].holdings; above != kNone; above = holdings_[above].next) {
    const EndpointId endpoint = holdings_[above].endpoint;
    const Index added = add_holding(below, endpoint);
    link_before(added, holdings_[above].older);
    held_[endpoint].bytes += cost(0);
    grown_.push_back(endpoint);
  }
}

TextTree::Index TextTree::find(Index node, EndpointId endpoint) const {
  Index at = nodes_[node].holdings;
  while (at != kNone && holdings_[at].endpoint != endpoint) at = holdings_[at].next;
  return at;
}

TextTree::Index TextTree::add_holding(Index node, EndpointId endpoint) {
  if (free_holdings_.empty()) {
    free_holdings_.push_back(static_cast<Index>(holdings_.size()));
    holdings_.emplace_back();
  }
  const Index index = free_holdings_.back();
  free_holdings_.pop_back();
  holdings_[index] = {.endpoint = endpoint, .node = node, .next = nodes_[node].holdings};
  nodes_[node].holdings = index;
  return index;
}

void TextTree::link_before(Index holding, Index older) {
  Held& held = held_[holdings_[holding].endpoint];
  const Index newer = older != kNone ? holdings_[older].newer : held.oldest;
  holdings_[holding].older = older;
  holdings_[holding].newer = newer;
  (older != kNone ? holdings_[older].newer : held.oldest) = holding;
  (newer != kNone ? holdings_[newer].older : held.newest) = holding;
}

void TextTree::unlink(const Holding& holding) {
  Held& held = held_[holding.endpoint];
  (holding.older != kNone ? holdings_[holding.older].newer : held.oldest) = holding.newer;
  (holding.newer != kNone ? holdings_[holding.newer].older : held.newest) = holding.older;
}

void TextTree::insert(std::string_view text, EndpointId endpoint) {
  text = text.substr(0, bytes_max_ - std::min(bytes_max_, cost(0)));
  if (endpoint >= held_.size()) held_.resize(endpoint + std::size_t{1});
  path_.clear();
  grown_.assign(1, endpoint);
  Index index = kNone;
  while (!text.empty()) {
    Index next = child(nodes_[index], text.front());
    std::size_t shared = text.size();
    if (next == kNone) {
      next = add_node(index, text);
    } else {
      shared = common_prefix(nodes_[next].edge, text);
      if (shared < nodes_[next].edge.size()) split(next, shared);
    }
    text.remove_prefix(shared);
    path_.push_back(next);
    index = next;
  }
  // Walks from the last node to the root, so that a parent becomes newer than its children.
  for (auto node = path_.rbegin(); node != path_.rend(); ++node) {
    Index holding = find(*node, endpoint);
    if (holding != kNone) {
      unlink(holdings_[holding]);
    } else {
      holding = add_holding(*node, endpoint);
      held_[endpoint].bytes += cost(nodes_[*node].edge.size());
    }
    link_before(holding, held_[endpoint].newest);
  }
  for (const EndpointId each : grown_)
    while (held_[each].bytes > bytes_max_) forget_oldest(each);
}

// Removes the endpoint's oldest holding. The endpoint has no holding at a child of its node, because a parent
// is newer than its children.
void TextTree::forget_oldest(EndpointId endpoint) {
  const Index oldest = held_[endpoint].oldest;
  const Index index = holdings_[oldest].node;
  unlink(holdings_[oldest]);
  Node& node = nodes_[index];
  held_[endpoint].bytes -= cost(node.edge.size());
  Index* link = &node.holdings;
  while (*link != oldest) link = &holdings_[*link].next;
  *link = holdings_[oldest].next;
  free_holdings_.push_back(oldest);
  if (node.holdings != kNone) return;
  auto& siblings = nodes_[node.parent].children;
  siblings.erase(std::ranges::lower_bound(siblings, node.edge.front(), {}, &std::pair<char, Index>::first));
  if (siblings.capacity() > 4 * siblings.size()) siblings.shrink_to_fit();
  node = {};
  free_nodes_.push_back(index);
}

void TextTree::clear(EndpointId endpoint) {
  while (bytes(endpoint) > 0) forget_oldest(endpoint);
}

}  // namespace octavo::fleet
