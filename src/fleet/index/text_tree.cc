#include "fleet/index/text_tree.h"

#include <algorithm>
#include <queue>

namespace octavo::fleet {
namespace {

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t length = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(length), b.begin()).first - a.begin());
}

}  // namespace

TextTree::TextTree(std::size_t bytes_max) : bytes_max_(bytes_max) {}

TextTree::Place TextTree::child(const Node& node, char first) const {
  const auto found = std::ranges::lower_bound(node.children, first, {}, &std::pair<char, Place>::first);
  return found != node.children.end() && found->first == first ? found->second : 0;
}

void TextTree::match(std::string_view text, TextMatch& found) const {
  for (const EndpointId id : found.holders) found.bytes[id] = 0;
  found.holders.clear();
  found.bytes.resize(bytes_.size());
  std::size_t depth = 0;
  Place place = 0;
  while (depth < text.size() && (place = child(nodes_[place], text[depth])) != 0) {
    const Node& node = nodes_[place];
    const std::size_t shared = common_prefix(node.edge, text.substr(depth));
    for (const Holder& holder : node.holders) {
      if (depth == 0) found.holders.push_back(holder.endpoint);
      found.bytes[holder.endpoint] = depth + shared;
    }
    depth += shared;
    if (shared < node.edge.size()) return;
  }
}

TextTree::Place TextTree::add_node(Place parent, std::string_view edge) {
  if (free_.empty()) {
    free_.push_back(static_cast<Place>(nodes_.size()));
    nodes_.emplace_back();
  }
  const Place place = free_.back();
  free_.pop_back();
  nodes_[place].edge = edge;
  nodes_[place].parent = parent;
  auto& siblings = nodes_[parent].children;
  siblings.insert(std::ranges::lower_bound(siblings, edge.front(), {}, &std::pair<char, Place>::first),
                  {edge.front(), place});
  return place;
}

// The node keeps the first `at` bytes of its edge; a new child takes the rest, its children and its holders.
void TextTree::split(Place place, std::size_t at) {
  auto children = std::exchange(nodes_[place].children, {});
  const std::string rest = nodes_[place].edge.substr(at);
  nodes_[place].edge.resize(at);
  nodes_[place].edge.shrink_to_fit();
  const Place below = add_node(place, rest);
  for (const auto& [first, grandchild] : children) nodes_[grandchild].parent = below;
  nodes_[below].children = std::move(children);
  nodes_[below].holders = nodes_[place].holders;
}

void TextTree::hold(Place place, EndpointId endpoint) {
  auto& holders = nodes_[place].holders;
  const auto found = std::ranges::find(holders, endpoint, &Holder::endpoint);
  if (found != holders.end()) {
    found->used = uses_;
  } else {
    holders.push_back({endpoint, uses_});
    bytes_[endpoint] += nodes_[place].edge.size();
  }
}

void TextTree::insert(std::string_view text, EndpointId endpoint) {
  text = text.substr(0, bytes_max_);
  if (endpoint >= bytes_.size()) bytes_.resize(endpoint + std::size_t{1});
  ++uses_;
  Place place = 0;
  while (!text.empty()) {
    const Place next = child(nodes_[place], text.front());
    if (next == 0) {
      hold(add_node(place, text), endpoint);
      break;
    }
    const std::size_t shared = common_prefix(nodes_[next].edge, text);
    if (shared < nodes_[next].edge.size()) split(next, shared);
    hold(next, endpoint);
    text.remove_prefix(shared);
    place = next;
  }
  if (bytes_[endpoint] > bytes_max_) evict(endpoint, bytes_max_ - bytes_max_ / 10);
}

void TextTree::forget(Place place, EndpointId endpoint) {
  Node& node = nodes_[place];
  std::erase_if(node.holders, [&](const Holder& holder) { return holder.endpoint == endpoint; });
  bytes_[endpoint] -= node.edge.size();
  if (!node.holders.empty()) return;
  auto& siblings = nodes_[node.parent].children;
  siblings.erase(std::ranges::lower_bound(siblings, node.edge.front(), {}, &std::pair<char, Place>::first));
  node = {};
  free_.push_back(place);
}

void TextTree::evict(EndpointId endpoint, std::size_t bytes_left) {
  const auto use = [&](Place place) -> const Holder* {
    const auto& holders = nodes_[place].holders;
    const auto found = std::ranges::find(holders, endpoint, &Holder::endpoint);
    return found != holders.end() ? &*found : nullptr;
  };
  const auto is_end = [&](Place place) {  // of what the endpoint holds
    return std::ranges::none_of(nodes_[place].children, [&](const auto& c) { return use(c.second); });
  };
  using Candidate = std::pair<std::uint64_t, Place>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> ends;
  for (Place place = 1; place < nodes_.size(); ++place)
    if (const Holder* holder = use(place); holder && is_end(place)) ends.emplace(holder->used, place);
  while (bytes_[endpoint] > bytes_left && !ends.empty()) {
    const Place place = ends.top().second;
    ends.pop();
    const Place parent = nodes_[place].parent;
    forget(place, endpoint);
    if (parent != 0 && is_end(parent)) ends.emplace(use(parent)->used, parent);
  }
}

void TextTree::clear(EndpointId endpoint) {
  if (bytes(endpoint) > 0) evict(endpoint, 0);
}

}  // namespace octavo::fleet
