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

// Returns the bytes of memory for a node with its entry in the parent's children, a holding, and the
// allocator's overhead.
std::size_t TextTree::cost(std::size_t edge_bytes) {
  constexpr std::size_t kAllocated = 48;
  return edge_bytes + sizeof(Node) + sizeof(Holding) + 2 * sizeof(std::pair<char, Place>) + kAllocated;
}

TextTree::Place TextTree::child(const Node& node, char first) const {
  const auto found = std::ranges::lower_bound(node.children, first, {}, &std::pair<char, Place>::first);
  return found != node.children.end() && found->first == first ? found->second : kNone;
}

void TextTree::match(std::string_view text, TextMatch& found) const {
  for (const EndpointId id : found.holders) found.bytes[id] = 0;
  found.holders.clear();
  found.bytes.resize(held_.size());
  std::size_t depth = 0;
  Place place = kNone;
  while (depth < text.size() && (place = child(nodes_[place], text[depth])) != kNone) {
    const Node& node = nodes_[place];
    const std::size_t shared = common_prefix(node.edge, text.substr(depth));
    for (Place at = node.holdings; at != kNone; at = holdings_[at].next) {
      if (depth == 0) found.holders.push_back(holdings_[at].endpoint);
      found.bytes[holdings_[at].endpoint] = depth + shared;
    }
    depth += shared;
    if (shared < node.edge.size()) return;
  }
}

TextTree::Place TextTree::add_node(Place parent, std::string_view edge) {
  if (free_nodes_.empty()) {
    free_nodes_.push_back(static_cast<Place>(nodes_.size()));
    nodes_.emplace_back();
  }
  const Place place = free_nodes_.back();
  free_nodes_.pop_back();
  nodes_[place].edge = edge;
  nodes_[place].parent = parent;
  auto& siblings = nodes_[parent].children;
  siblings.insert(std::ranges::lower_bound(siblings, edge.front(), {}, &std::pair<char, Place>::first),
                  {edge.front(), place});
  return place;
}

// Splits an edge: the node keeps the first `at` bytes. A new child gets the remaining bytes, the node's
// children and a holding for each of the node's endpoints.
void TextTree::split(Place place, std::size_t at) {
  auto children = std::exchange(nodes_[place].children, {});
  const std::string rest = nodes_[place].edge.substr(at);
  nodes_[place].edge.resize(at);
  nodes_[place].edge.shrink_to_fit();
  const Place below = add_node(place, rest);
  for (const auto& [first, grandchild] : children) nodes_[grandchild].parent = below;
  nodes_[below].children = std::move(children);
  for (Place above = nodes_[place].holdings; above != kNone; above = holdings_[above].next) {
    const EndpointId endpoint = holdings_[above].endpoint;
    const Place added = add_holding(below, endpoint);
    link_before(added, holdings_[above].older);
    held_[endpoint].bytes += cost(0);
    grown_.push_back(endpoint);
  }
}

TextTree::Place TextTree::find(Place node, EndpointId endpoint) const {
  Place at = nodes_[node].holdings;
  while (at != kNone && holdings_[at].endpoint != endpoint) at = holdings_[at].next;
  return at;
}

TextTree::Place TextTree::add_holding(Place node, EndpointId endpoint) {
  if (free_holdings_.empty()) {
    free_holdings_.push_back(static_cast<Place>(holdings_.size()));
    holdings_.emplace_back();
  }
  const Place place = free_holdings_.back();
  free_holdings_.pop_back();
  holdings_[place] = {.endpoint = endpoint, .node = node, .next = nodes_[node].holdings};
  nodes_[node].holdings = place;
  return place;
}

void TextTree::link_before(Place holding, Place older) {
  Held& held = held_[holdings_[holding].endpoint];
  const Place newer = older != kNone ? holdings_[older].newer : held.oldest;
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
  Place place = kNone;
  while (!text.empty()) {
    Place next = child(nodes_[place], text.front());
    std::size_t shared = text.size();
    if (next == kNone) {
      next = add_node(place, text);
    } else {
      shared = common_prefix(nodes_[next].edge, text);
      if (shared < nodes_[next].edge.size()) split(next, shared);
    }
    text.remove_prefix(shared);
    path_.push_back(next);
    place = next;
  }
  // Walks from the last node to the root, so that a parent becomes newer than its children.
  for (auto node = path_.rbegin(); node != path_.rend(); ++node) {
    Place holding = find(*node, endpoint);
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

// Removes the endpoint's oldest holding. Its node is a leaf for the endpoint, since a parent is newer than
// its children.
void TextTree::forget_oldest(EndpointId endpoint) {
  const Place oldest = held_[endpoint].oldest;
  const Place place = holdings_[oldest].node;
  unlink(holdings_[oldest]);
  Node& node = nodes_[place];
  held_[endpoint].bytes -= cost(node.edge.size());
  Place* link = &node.holdings;
  while (*link != oldest) link = &holdings_[*link].next;
  *link = holdings_[oldest].next;
  free_holdings_.push_back(oldest);
  if (node.holdings != kNone) return;
  auto& siblings = nodes_[node.parent].children;
  siblings.erase(std::ranges::lower_bound(siblings, node.edge.front(), {}, &std::pair<char, Place>::first));
  if (siblings.capacity() > 4 * siblings.size()) siblings.shrink_to_fit();
  node = {};
  free_nodes_.push_back(place);
}

void TextTree::clear(EndpointId endpoint) {
  while (bytes(endpoint) > 0) forget_oldest(endpoint);
}

}  // namespace octavo::fleet
