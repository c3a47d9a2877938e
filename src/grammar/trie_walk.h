// Walks the trie of the vocabulary, to compute masks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/vocabulary.h"

namespace octavo::grammar {

// Does the same as walk_trie(), but visits the nodes in memory order and looks at every child of a reached
// node. path: scratch memory; element i is the node i bytes below `from` on the current path, and its state.
template <class State, class Live, class Step, class Visit>
std::size_t scan_trie(const Vocabulary& vocabulary, std::vector<std::pair<std::uint32_t, State>>& path,
                      std::uint32_t from, State state, std::size_t most, Live&& live, Step&& step,
                      Visit&& visit) {
  const auto trie = vocabulary.trie();
  std::size_t looked_at = 0;
  path.assign(1, {from, state});
  for (std::uint32_t i = from + 1; i < trie[from].end && looked_at <= most; ++looked_at) {
    const TrieNode& node = trie[i];
    path.resize(std::size_t{node.depth} - trie[from].depth);
    const State before = path.back().second;
    std::uint32_t after = node.end;
    if (live(before).has(node.byte)) {
      const State next = step(before, node.byte);
      if (visit(i, next)) {
        path.emplace_back(i, next);
        after = i + 1;
      }
    }
    i = after;
  }
  return looked_at;
}

// Follows all paths below node `from`, whose state is `state`. Returns the number of visited nodes. If this
// number is above `most`, the walk was stopped early.
// - live(state) returns the bytes that can follow.
// - step(state, byte) returns the next state.
// - visit(node, state) is called for each reached node. It returns false to skip the nodes below.
// - open: scratch memory.
template <class State, class Live, class Step, class Visit>
std::size_t walk_trie(const Vocabulary& vocabulary, std::vector<std::pair<std::uint32_t, State>>& open,
                      std::uint32_t from, State state, std::size_t most, Live&& live, Step&& step,
                      Visit&& visit) {
  // If most bytes can follow, nearly all nodes are reached. Then visiting the nodes in memory order is
  // fastest.
  constexpr int kMostBytes = 96;
  if (live(state).count() >= kMostBytes)
    return scan_trie(vocabulary, open, from, state, most, live, step, visit);
  std::size_t looked_at = 0;
  open.assign(1, {from, state});
  while (!open.empty() && looked_at <= most) {
    const auto [at, before] = open.back();
    open.pop_back();
    const auto bytes = vocabulary.child_bytes(at);
    const auto nodes = vocabulary.child_nodes(at);
    const auto take = [&](std::size_t i) {
      const State next = step(before, bytes[i]);
      if (visit(nodes[i], next)) open.emplace_back(nodes[i], next);
    };
    const ByteSet wanted = live(before);
    if (bytes.size() > 8 && 8 * wanted.count() < bytes.size()) {
      looked_at += wanted.count();
      wanted.for_each([&](std::uint8_t byte) {
        const auto it = std::ranges::lower_bound(bytes, byte);
        if (it != bytes.end() && *it == byte) take(static_cast<std::size_t>(it - bytes.begin()));
      });
    } else {
      looked_at += bytes.size();
      for (std::size_t i = 0; i < bytes.size(); ++i)
        if (wanted.has(bytes[i])) take(i);
    }
  }
  return looked_at;
}

}  // namespace octavo::grammar
