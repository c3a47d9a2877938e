#include "grammar/dense_rule.h"

#include <algorithm>
#include <unordered_set>

#include "grammar/limits.h"
#include "grammar/trie_walk.h"

namespace octavo::grammar {

namespace {
constexpr std::size_t kEntriesMax = 1u << 20;
constexpr std::size_t kCopiedPerNode = 16;  // number of tokens that can be copied in the time of a node visit
}

std::optional<DenseRule> DenseRule::make(const Tables& tables, StateId first, StateId end) {
  DenseRule rule;
  rule.first_ = first;
  rule.classes_ = tables.classes;
  const auto classes = static_cast<std::size_t>(tables.classes);
  if ((end - first) * classes > kEntriesMax) return std::nullopt;
  rule.next_.assign((end - first) * classes, kNowhere);
  rule.prefix_free_ = !tables.states[first].accepting;
  for (StateId s = first; s < end; ++s) {
    if (!tables.call_edges(s).empty() || !tables.token_edges(s).empty()) return std::nullopt;
    ByteSet& bytes = rule.bytes_.emplace_back();
    for (const Edge& edge : tables.byte_edges(s)) {
      bytes.add(edge.low, edge.high);
      for (unsigned c = tables.byte_class[edge.low]; c <= tables.byte_class[edge.high]; ++c) {
        std::uint32_t& next = rule.next_[(s - first) * classes + c];
        if (next != kNowhere && next != edge.target - first) return std::nullopt;
        next = edge.target - first;
      }
    }
    rule.accepting_.push_back(tables.states[s].accepting);
    rule.ends_.push_back(tables.ends(s));
    rule.prefix_free_ = rule.prefix_free_ && rule.accepting_.back() == rule.ends_.back();
  }
  return rule;
}

std::optional<StateMask> DenseRule::mask(const Tables& tables, const Vocabulary& vocabulary, StateId state,
                                         std::size_t most) const {
  const auto trie = vocabulary.trie();
  const auto sorted = vocabulary.sorted_tokens();
  StateMask out;
  out.may_end = accepting_[state - first_];
  std::vector<TokenId> accepted;
  std::vector<std::uint32_t> open;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> scratch;
  std::vector<std::optional<Onward>> onwards(bytes_.size());
  // Whether all tokens below a node are accepted and none of them is open.
  const auto takes_all_below = [&](std::uint32_t i, std::uint32_t at) {
    const KindSet kinds = vocabulary.kinds_below()[i];
    const std::size_t bytes_max = std::min<std::size_t>(trie[i].end - i - 1, vocabulary.token_bytes_max());
    for (std::size_t characters = 0; characters < bytes_max; ++characters) {
      if (!onwards[at]) onwards[at] = onward(tables, at);
      if ((kinds & ~onwards[at]->kinds) != 0) return false;
      if (onwards[at]->to == at) return true;
      at = onwards[at]->to;
    }
    return true;
  };
  std::size_t copied = 0;
  out.visited = walk_trie(
      vocabulary, scratch, 0, state - first_, most,
      [&](std::uint32_t at) -> const ByteSet& { return bytes_[at]; },
      [&](std::uint32_t at, std::uint8_t byte) { return next(tables, at, byte); },
      [&](std::uint32_t i, std::uint32_t at) {
        const TrieNode& node = trie[i];
        for (std::uint32_t t = 0; t < node.token_count; ++t) accepted.push_back(sorted[node.first_token + t]);
        if (node.end == i + 1) return false;
        if (accepting_[at]) open.push_back(i);
        if (ends_[at]) return false;
        if (!takes_all_below(i, at)) return true;
        const auto below = vocabulary.tokens_below(i);
        accepted.insert(accepted.end(), below.begin(), below.end());
        copied += below.size();
        return false;
      });
  out.visited += copied / kCopiedPerNode;
  if (out.visited > most) return std::nullopt;
  out.set_open(trie, open, {});
  out.accepted = TokenSet(accepted, vocabulary.mask_words());
  return out;
}

DenseRule::Onward DenseRule::onward(const Tables& tables, std::uint32_t state) const {
  Onward found;
  for (const char byte : {'e', ' ', '0', 'E', '-'})  // the state to which most of these bytes lead
    if (found.to == kNowhere) found.to = next(tables, state, static_cast<std::uint8_t>(byte));
  if (found.to == kNowhere) return found;
  const auto lives = [&](std::uint32_t at) { return at != kNowhere && !accepting_[at]; };
  const auto leads_on = [&](unsigned byte) {
    std::uint32_t at = next(tables, state, static_cast<std::uint8_t>(byte));
    Utf8Rest rest = utf8_rest(static_cast<std::uint8_t>(byte));
    for (; rest.left > 0 && lives(at); rest = {0x80, 0xBF, static_cast<std::uint8_t>(rest.left - 1)}) {
      const std::uint32_t* const row = &next_[at * static_cast<std::size_t>(classes_)];
      const int low = tables.byte_class[rest.low], high = tables.byte_class[rest.high];
      if (!std::all_of(row + low, row + high + 1, [&](std::uint32_t to) { return to == row[low]; }))
        return false;
      at = row[low];
    }
    return at == found.to && lives(at);
  };
  KindSet excluded = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const KindSet kind = kind_of(static_cast<std::uint8_t>(byte));
    found.kinds |= kind;
    if ((excluded & kind) == 0 && !leads_on(byte)) excluded |= kind;
  }
  found.kinds &= ~excluded;
  return found;
}

std::optional<StateId> DenseRule::hub(const Tables& tables, StateId state) const {
  // Thresholds for the 96 bytes of text (below 128, without control characters). If a schema excludes many
  // names, their first letters include most letters. A few bytes later the two states are equal.
  constexpr int kMost = 80, kMany = 32;
  const auto leading = [&](std::uint32_t from, std::uint32_t to) {
    int count = 0;
    for (unsigned byte = 0x20; byte < 0x80; ++byte)
      count += next(tables, from, static_cast<std::uint8_t>(byte)) == to;
    return count;
  };
  const std::uint32_t from = state - first_;
  for (const char byte : {'~', '`', 'Q', '4'}) {
    const std::uint32_t to = next(tables, from, static_cast<std::uint8_t>(byte));
    if (to != kNowhere && to != from && leading(from, to) >= kMany && leading(to, to) >= kMost)
      return to + first_;
  }
  return std::nullopt;
}

std::size_t DenseRule::alike(StateId a, StateId b, std::size_t bytes_max, std::size_t most,
                             std::size_t& cost) const {
  constexpr std::size_t kPairsMax = 4096;
  const auto classes = static_cast<std::size_t>(classes_);
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  std::vector<Pair> pairs{{a - first_, b - first_}};
  std::unordered_set<std::uint64_t> seen;
  std::size_t at = 0, length = 0;
  for (; length < bytes_max && at < pairs.size() && pairs.size() <= kPairsMax && cost <= most; ++length) {
    for (const std::size_t end = pairs.size(); at < end; ++at) {
      cost += classes / kWalkShare + 1;
      const auto [x, y] = pairs[at];
      for (std::size_t c = 0; c < classes; ++c) {
        const std::uint32_t to_x = next_[x * classes + c], to_y = next_[y * classes + c];
        if (to_x == to_y) continue;
        if (to_x == kNowhere || to_y == kNowhere || accepting_[to_x] != accepting_[to_y]) return length;
        if (seen.insert(std::uint64_t{to_x} << 32 | to_y).second) pairs.emplace_back(to_x, to_y);
      }
    }
  }
  return at == pairs.size() ? bytes_max : length;
}

std::optional<StateMask> DenseRule::mask_near(const Tables& tables, const Vocabulary& vocabulary,
                                              StateId state, StateId other,
                                              std::shared_ptr<const StateMask> of_other, std::size_t alike,
                                              std::size_t most) const {
  const auto trie = vocabulary.trie();
  const auto sorted = vocabulary.sorted_tokens();
  StateMask out;
  out.may_end = accepting_[state - first_];
  out.subtracts = true;
  struct Place {
    std::uint32_t node, here, there;  // trie node, and the states that the two start states reach at it
  };
  const auto after = [&](std::uint32_t at, std::uint8_t byte) {
    return at == kNowhere ? kNowhere : next(tables, at, byte);
  };
  const auto ends_inside = [&](std::uint32_t at) { return at != kNowhere && accepting_[at]; };
  std::vector<TokenId> added;
  std::vector<std::uint32_t> open;
  std::vector<Place> work{{0, state - first_, other - first_}};
  while (!work.empty()) {
    const Place at = work.back();
    work.pop_back();
    const auto bytes = vocabulary.child_bytes(at.node);
    const auto nodes = vocabulary.child_nodes(at.node);
    out.visited += bytes.size();
    if (out.visited > most) return std::nullopt;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::uint32_t n = nodes[i];
      // Skips subtrees in which no path can be longer than `alike`.
      if (trie[n].depth + (trie[n].end - n - 1) <= alike) continue;
      const std::uint32_t here = after(at.here, bytes[i]), there = after(at.there, bytes[i]);
      if (here == there) continue;
      const auto ids = sorted.subspan(trie[n].first_token, trie[n].token_count);
      if (here == kNowhere) out.removed.insert(out.removed.end(), ids.begin(), ids.end());
      if (there == kNowhere) added.insert(added.end(), ids.begin(), ids.end());
      if (trie[n].end == n + 1) continue;
      if (ends_inside(here) && !ends_inside(there)) open.push_back(n);
      if (ends_inside(there) && !ends_inside(here))
        for (const std::uint32_t child : vocabulary.child_nodes(n)) out.closed.push_back(child);
      work.push_back({n, here, there});
    }
  }
  std::ranges::sort(out.closed);
  out.set_open(trie, open, {});
  out.accepted = TokenSet(added, vocabulary.mask_words());
  out.base = std::move(of_other);
  return out;
}

std::optional<StateMask> DenseRule::repeated(const Tables& tables, const Vocabulary& vocabulary,
                                             StateId start, std::size_t most) const {
  const auto trie = vocabulary.trie();
  const auto sorted = vocabulary.sorted_tokens();
  struct Place {
    std::uint32_t state, repeats;  // state, and number of complete repetitions
    bool complete;                 // the last repetition ends at this node
  };
  StateMask out;
  out.may_end = true;
  std::vector<std::uint32_t> open, open_repeats;
  std::vector<std::pair<std::uint32_t, TokenId>> accepted;  // number of repetitions that the token begins,
                                                            // and the token
  std::vector<std::pair<std::uint32_t, Place>> scratch;
  out.visited = walk_trie(
      vocabulary, scratch, 0, Place{start - first_, 0, false}, most,
      [&](const Place& at) -> const ByteSet& { return bytes_[at.state]; },
      [&](const Place& at, std::uint8_t byte) {
        const std::uint32_t behind = next(tables, at.state, byte);
        return ends_[behind] ? Place{start - first_, at.repeats + 1, true} : Place{behind, at.repeats, false};
      },
      [&](std::uint32_t i, const Place& at) {
        const TrieNode& node = trie[i];
        const std::uint32_t begun = at.complete ? at.repeats : at.repeats + 1;
        for (std::uint32_t t = 0; t < node.token_count; ++t)
          accepted.emplace_back(begun, sorted[node.first_token + t]);
        if (node.end == i + 1) return false;
        if (at.complete) {
          open.push_back(i);
          open_repeats.push_back(at.repeats);
        }
        return true;
      });
  if (out.visited > most) return std::nullopt;
  out.set_open(trie, open, open_repeats);
  // The lists are sorted by counting.
  out.repeats_begin.assign(vocabulary.token_bytes_max() + 2, 0);
  for (const auto& entry : accepted) ++out.repeats_begin[entry.first + 1];
  for (std::size_t r = 1; r < out.repeats_begin.size(); ++r) out.repeats_begin[r] += out.repeats_begin[r - 1];
  std::vector<std::uint32_t> place = out.repeats_begin;
  out.by_repeats.resize(accepted.size());
  for (const auto& [repeats, token] : accepted) out.by_repeats[place[repeats]++] = token;
  out.accepted = TokenSet(out.by_repeats, vocabulary.mask_words());
  return out;
}

StateMask bounded(std::shared_ptr<const StateMask> unbounded, std::uint32_t min, std::uint32_t max,
                  std::size_t mask_words) {
  const StateMask& all = *unbounded;
  StateMask out;
  out.may_end = min == 0;
  out.repeats_min = min;
  out.repeats_max = max;
  // Tokens that need more than `max` repetitions are at the end of the list.
  const std::size_t kept =
      max + std::size_t{1} < all.repeats_begin.size() ? all.repeats_begin[max + 1] : all.by_repeats.size();
  const auto tokens = std::span(all.by_repeats);
  const auto keep = tokens.first(kept), remove = tokens.subspan(kept);
  if (keep.size() < remove.size()) {
    out.accepted = TokenSet(keep, mask_words);
  } else if (remove.size() > mask_words / 8) {
    out.accepted = all.accepted.without(remove, mask_words);
  } else {
    out.removed.assign(remove.begin(), remove.end());
    out.subtracts = true;
  }
  out.base = std::move(unbounded);
  return out;
}

}  // namespace octavo::grammar
