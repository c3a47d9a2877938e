#include "grammar/dense_rule.h"

#include <algorithm>
#include <unordered_set>

#include "grammar/limits.h"
#include "grammar/trie_walk.h"

namespace octavo::grammar {

namespace {
constexpr std::size_t kEntriesMax = 1u << 20;
// number of tokens that can be copied in the time of visiting one trie node
constexpr std::size_t kCopiedPerNode = 16;
// number of trie nodes that can be visited in the time of finding the safe texts of one state
constexpr std::uint32_t kNodesPerState = 128;
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

template <class Visit>
void DenseRule::for_each_character(const Tables& tables, std::uint32_t state, Visit&& visit) const {
  const auto follow = [&](auto& self, std::uint32_t at, Utf8Rest rest, std::uint8_t first,
                          KindSet kind) -> void {
    if (at == kNowhere || rest.left == 0 || accepting_[at]) {
      visit(rest.left > 0 && at != kNowhere ? kNowhere : at, kind);
      return;
    }
    const std::uint32_t* const row = &next_[at * static_cast<std::size_t>(classes_)];
    const Utf8Rest following{0x80, 0xBF, static_cast<std::uint8_t>(rest.left - 1)};
    std::pair<std::uint32_t, KindSet> last;
    for (unsigned byte = rest.low; byte <= rest.high; ++byte) {
      const std::pair to{row[tables.byte_class[byte]],
                         first != 0 ? kind_of(first, static_cast<std::uint8_t>(byte)) : kind};
      if (byte != rest.low && to == last) continue;
      last = to;
      self(self, to.first, following, 0, to.second);
    }
  };
  struct Lead {
    std::uint32_t to;
    KindSet kind;
    Utf8Rest rest;
    bool operator==(const Lead&) const = default;
  } last{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto first = static_cast<std::uint8_t>(byte);
    const Lead lead{next(tables, state, first), kind_of(first), utf8_rest(first)};
    if (lead == last || lead.kind.empty()) continue;
    last = lead;
    follow(follow, lead.to, lead.rest, first, lead.kind);
  }
}

bool DenseRule::Safe::allows(KindSet text, std::size_t characters) const {
  if (characters > kinds.size() && !unbounded) return false;
  return text.without(kinds[std::clamp<std::size_t>(characters, 1, kinds.size()) - 1]).empty();
}

// Computes and caches Safe (dense_rule.h) for each state.
class DenseRule::SafeTexts {
 public:
  SafeTexts(const DenseRule& rule, const Tables& tables)
      : rule_(rule), tables_(tables), onwards_(rule.bytes_.size()), safe_(rule.bytes_.size()) {}

  // Returns true if every text with these kinds and at most this number of characters is safe after `state`.
  // nodes: number of trie nodes that the answer would save; returns false if finding the answer takes longer
  // than visiting them.
  bool allow(std::uint32_t state, KindSet kinds, std::size_t characters, std::uint32_t nodes) {
    // A text that begins inside a character is never safe.
    if (!(kinds & kNoKind).empty()) return false;
    if (!safe_[state]) {
      if (nodes < kNodesPerState) return false;
      safe_[state] = make(state);
    }
    return safe_[state]->allows(kinds, characters);
  }

 private:
  static constexpr std::size_t kStatesMax = 32;

  const Onward& onward(std::uint32_t state) {
    if (!onwards_[state]) onwards_[state] = rule_.onward(tables_, state);
    return *onwards_[state];
  }

  // Follows all characters from `state`. Some kinds may lead to a state that excludes other kinds, such as
  // the state after '\\' in a JSON string. If the number of excluded kinds is not smaller than the number of
  // kinds that lead to that state, the result leaves out the latter.
  Safe make(std::uint32_t state) {
    Safe safe;
    KindSet kinds = onward(state).lives;
    std::vector<std::uint32_t> states{state};
    for (std::size_t at = 0; at < states.size() && states.size() <= kStatesMax;) {
      safe.kinds.push_back(kinds);
      for (const std::size_t end = states.size(); at < end; ++at) {
        for (const Onward::Target& target : onward(states[at]).targets) {
          const KindSet leading = target.kinds & kinds;
          if (leading.empty() || std::ranges::find(states, target.state) != states.end()) continue;
          const KindSet lives = kinds & onward(target.state).lives;
          if (leading.count() <= kinds.without(lives).count()) {
            kinds = kinds.without(leading);
          } else {
            kinds = lives;
            states.push_back(target.state);
          }
        }
      }
    }
    safe.unbounded = states.size() <= kStatesMax;
    // The last round may have removed kinds, so the remaining kinds are added for one more character.
    if (safe.unbounded) safe.kinds.push_back(kinds);
    return safe;
  }

  const DenseRule& rule_;
  const Tables& tables_;
  std::vector<std::optional<Onward>> onwards_;
  std::vector<std::optional<Safe>> safe_;
};

std::optional<StateMask> DenseRule::mask(const Tables& tables, const Vocabulary& vocabulary, StateId state,
                                         std::size_t most) const {
  const auto trie = vocabulary.trie();
  const auto sorted = vocabulary.sorted_tokens();
  StateMask out;
  out.may_end = accepting_[state - first_];
  std::vector<TokenId> accepted;
  std::vector<std::uint32_t> open;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> scratch;
  SafeTexts safe(*this, tables);
  const TextBelow& text = vocabulary.text_below();
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
        if (!safe.allow(at, text.kinds[i], text.characters[i], node.end - i)) return true;
        const auto below = vocabulary.tokens_below(i);
        accepted.insert(accepted.end(), below.begin(), below.end());
        copied += below.size();
        return false;
      });
  out.visited += copied / kCopiedPerNode;
  if (out.visited > most) return std::nullopt;
  out.set_open(trie, open);
  out.accepted = TokenSet(accepted, vocabulary.mask_words());
  return out;
}

DenseRule::Onward DenseRule::onward(const Tables& tables, std::uint32_t state) const {
  Onward found;
  KindSet seen, dead;
  const auto arrive = [&](std::uint32_t to, KindSet kind) {
    if (to == kNowhere || accepting_[to]) {
      dead |= kind;
      return;
    }
    const auto known = std::ranges::find(found.targets, to, &Onward::Target::state);
    if (known != found.targets.end())
      known->kinds |= kind;
    else
      found.targets.push_back({to, kind});
  };
  for_each_character(tables, state, [&](std::uint32_t to, KindSet kind) {
    seen |= kind;
    arrive(to, kind);
  });
  found.lives = seen.without(dead);
  return found;
}

KindSet DenseRule::whole_texts(const Tables& tables, std::uint32_t start) const {
  KindSet seen, others;
  for_each_character(tables, start, [&](std::uint32_t to, KindSet kind) {
    seen |= kind;
    if (to == kNowhere || !ends_[to]) others |= kind;
  });
  return seen.without(others);
}

std::optional<StateId> DenseRule::hub(const Tables& tables, StateId state) const {
  // At least kMost of the 96 printable ASCII bytes must lead from the hub to itself, and at least kMany of
  // them from `state` to the hub. kMany is lower, because the names that a schema excludes may begin with
  // most letters.
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
  struct StatePair {
    std::uint32_t node, here, there;  // trie node, and the states that are reached there from `state` and
                                      // from `other`
  };
  const auto after = [&](std::uint32_t at, std::uint8_t byte) {
    return at == kNowhere ? kNowhere : next(tables, at, byte);
  };
  const auto ends_inside = [&](std::uint32_t at) { return at != kNowhere && accepting_[at]; };
  std::vector<TokenId> added;
  std::vector<std::uint32_t> open;
  std::vector<StatePair> work{{0, state - first_, other - first_}};
  while (!work.empty()) {
    const StatePair at = work.back();
    work.pop_back();
    const auto bytes = vocabulary.child_bytes(at.node);
    const auto nodes = vocabulary.child_nodes(at.node);
    out.visited += bytes.size();
    if (out.visited > most) return std::nullopt;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::uint32_t n = nodes[i];
      // Skips subtrees whose tokens have at most `alike` bytes, because these tokens have the same result in
      // both states.
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
  out.set_open(trie, open);
  out.accepted = TokenSet(added, vocabulary.mask_words());
  out.base = std::move(of_other);
  return out;
}

DenseRule::Repeats DenseRule::repeat(const Tables& tables, std::uint32_t start, const Repeats& at,
                                     std::uint8_t byte) const {
  const std::uint32_t to = next(tables, at.state, byte);
  const std::uint32_t characters = at.characters + begins_character(static_cast<char>(byte));
  return ends_[to] ? Repeats{start, at.repeats + 1, characters, true}
                   : Repeats{to, at.repeats, characters, false};
}

std::optional<StateMask> DenseRule::repeated(const Tables& tables, const Vocabulary& vocabulary,
                                             StateId start, std::size_t most) const {
  const auto trie = vocabulary.trie();
  const auto sorted = vocabulary.sorted_tokens();
  const TextBelow& text = vocabulary.text_below();
  const KindSet whole = whole_texts(tables, start - first_);
  StateMask out;
  out.may_end = true;
  out.open_by_path = true;
  // Accepted tokens sorted[first, end). `repeats` repetitions begin in each token. If `subtree` is true, each
  // character is one repetition, so another repetition begins with each character after the first
  // `characters`.
  struct Accepted {
    std::size_t first, end;
    std::uint32_t repeats, characters;
    bool subtree;
  };
  std::vector<Accepted> accepted;
  std::vector<std::pair<std::uint32_t, Repeats>> scratch;
  std::size_t copied = 0;
  out.visited = walk_trie(
      vocabulary, scratch, 0, Repeats{start - first_, 0, 0, false}, most,
      [&](const Repeats& at) -> const ByteSet& { return bytes_[at.state]; },
      [&](const Repeats& at, std::uint8_t byte) { return repeat(tables, start - first_, at, byte); },
      [&](std::uint32_t i, const Repeats& at) {
        const TrieNode& node = trie[i];
        const std::uint32_t begun = at.complete ? at.repeats : at.repeats + 1;
        const std::size_t first = node.first_token + node.token_count;
        if (node.token_count > 0) accepted.push_back({node.first_token, first, begun, 0, false});
        if (node.end == i + 1) return false;
        if (!at.complete || !text.kinds[i].without(whole).empty()) return true;
        const std::size_t count = vocabulary.tokens_below(i).size();
        accepted.push_back({first, first + count, at.repeats, at.characters, true});
        copied += count;
        return false;
      });
  out.visited += copied / kCopiedPerNode;
  if (out.visited > most) return std::nullopt;
  // counting sort
  const auto for_each_accepted = [&](auto&& take) {
    const auto characters = vocabulary.characters();
    for (const Accepted& some : accepted)
      for (std::size_t t = some.first; t < some.end; ++t)
        take(some.subtree ? some.repeats + characters[t] - some.characters : some.repeats, sorted[t]);
  };
  out.repeats_begin.assign(vocabulary.token_bytes_max() + 2, 0);
  for_each_accepted([&](std::size_t repeats, TokenId) { ++out.repeats_begin[repeats + 1]; });
  for (std::size_t r = 1; r < out.repeats_begin.size(); ++r) out.repeats_begin[r] += out.repeats_begin[r - 1];
  std::vector<std::uint32_t> next = out.repeats_begin;
  out.by_repeats.resize(out.repeats_begin.back());
  for_each_accepted([&](std::size_t repeats, TokenId token) { out.by_repeats[next[repeats]++] = token; });
  out.accepted = TokenSet(out.by_repeats, vocabulary.mask_words());
  return out;
}

std::optional<DenseRule::OpenNodes> DenseRule::open_after_repeats(const Tables& tables,
                                                                  const Vocabulary& vocabulary, StateId start,
                                                                  const ByteSet& wanted,
                                                                  std::size_t most) const {
  const TextBelow& text = vocabulary.text_below();
  // A node can have a wanted byte below it only if it has one of these kinds below it.
  KindSet kinds;
  wanted.for_each([&](std::uint8_t byte) { kinds |= byte < 0x80 ? kind_of(byte) : KindSet::all(); });
  OpenNodes out;
  std::vector<std::pair<std::uint32_t, Repeats>> scratch;
  out.visited = walk_trie(
      vocabulary, scratch, 0, Repeats{start - first_, 0, 0, false}, most,
      [&](const Repeats& at) -> const ByteSet& { return bytes_[at.state]; },
      [&](const Repeats& at, std::uint8_t byte) { return repeat(tables, start - first_, at, byte); },
      [&](std::uint32_t i, const Repeats& at) {
        if ((text.kinds[i] & kinds).empty()) return false;
        if (!at.complete) return true;
        const auto bytes = vocabulary.child_bytes(i);
        for (std::size_t c = 0; c < bytes.size(); ++c)
          if (wanted.has(bytes[c])) out.nodes.push_back({vocabulary.child_nodes(i)[c], at.repeats});
        return true;
      });
  if (out.visited > most) return std::nullopt;
  return out;
}

StateMask bounded(std::shared_ptr<const StateMask> unbounded, std::uint32_t min, std::uint32_t max,
                  std::size_t mask_words) {
  const StateMask& all = *unbounded;
  StateMask out;
  out.may_end = min == 0;
  out.open_by_path = true;
  out.repeats_min = min;
  out.repeats_max = max;
  // The list is sorted, so tokens with more than `max` repetitions are at the end.
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
