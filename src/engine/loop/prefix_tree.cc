#include "engine/loop/prefix_tree.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

namespace octavo {
namespace {

constexpr int kNone = -1;

struct Content {
  PrefixId prefix;
  PrefixId parent;
  int users;
};

// Returns the cached contents in ascending order of ids, so that parents precede their children.
std::vector<Content> contents_of(const BlockPool& pool) {
  std::vector<Content> all;
  for (BlockId block = 0; block < pool.total(); ++block)
    if (pool.prefix(block) != kEmptyPrefix)
      all.push_back({pool.prefix(block), pool.parent(block), pool.references(block)});
  // If several blocks have equal contents, keeps the block with the most users.
  std::ranges::sort(all, [](const Content& a, const Content& b) {
    return a.prefix != b.prefix ? a.prefix < b.prefix : a.users > b.users;
  });
  const auto equal = std::ranges::unique(all, {}, &Content::prefix);
  all.erase(equal.begin(), equal.end());
  return all;
}

// Returns the index of each content's parent in `contents`, or kNone if the parent is not cached.
std::vector<int> parents_of(const std::vector<Content>& contents) {
  std::vector<int> parents;
  parents.reserve(contents.size());
  for (const Content& content : contents) {
    const auto found = std::ranges::lower_bound(contents, content.parent, {}, &Content::prefix);
    const auto index = static_cast<int>(found - contents.begin());
    const bool before = index < static_cast<int>(parents.size()) && found->prefix == content.parent;
    parents.push_back(before ? index : kNone);
  }
  return parents;
}

// A node consists of consecutive contents without a branch.
std::vector<PrefixNode> nodes_of(const std::vector<Content>& contents) {
  const std::vector<int> parents = parents_of(contents);
  std::vector<int> children(contents.size(), 0);
  for (const int parent : parents)
    if (parent != kNone) ++children[static_cast<std::size_t>(parent)];
  std::vector<PrefixNode> nodes;
  std::vector<int> node_of;
  node_of.reserve(contents.size());
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const int before = parents[i] == kNone ? kNone : node_of[static_cast<std::size_t>(parents[i])];
    const bool forks = parents[i] == kNone || children[static_cast<std::size_t>(parents[i])] > 1;
    if (forks) nodes.push_back({.parent = before});
    node_of.push_back(forks ? static_cast<int>(nodes.size()) - 1 : before);
    PrefixNode& node = nodes[static_cast<std::size_t>(node_of.back())];
    ++node.blocks;
    node.used += contents[i].users > 0;
    node.shared += contents[i].users > 1;
  }
  return nodes;
}

}  // namespace

PrefixTree prefix_tree(const BlockPool& pool, std::size_t nodes_max) {
  const std::vector<PrefixNode> nodes = nodes_of(contents_of(pool));
  std::vector<std::int64_t> weights(nodes.size());  // number of blocks of the node and its descendants
  for (std::size_t i = nodes.size(); i-- > 0;) {
    weights[i] += nodes[i].blocks;
    if (nodes[i].parent != kNone) weights[static_cast<std::size_t>(nodes[i].parent)] += weights[i];
  }
  // A parent has more blocks than each of its children, so the parent of a chosen node is chosen, too.
  std::vector<std::size_t> chosen(nodes.size());
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  std::ranges::stable_sort(chosen, std::greater<>(), [&](std::size_t i) { return weights[i]; });
  chosen.resize(std::min(chosen.size(), nodes_max));
  std::ranges::sort(chosen);
  PrefixTree tree;
  tree.left_out = static_cast<std::int64_t>(nodes.size() - chosen.size());
  std::vector<int> index(nodes.size(), kNone);
  for (const std::size_t i : chosen) {
    index[i] = static_cast<int>(tree.nodes.size());
    tree.nodes.push_back(nodes[i]);
    if (nodes[i].parent != kNone) tree.nodes.back().parent = index[static_cast<std::size_t>(nodes[i].parent)];
  }
  return tree;
}

}  // namespace octavo
