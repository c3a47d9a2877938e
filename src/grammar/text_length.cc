#include "grammar/text_length.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace octavo::grammar {

namespace {

bool begins_code_point(unsigned byte) { return byte < 0x80 || byte > 0xBF; }

std::uint32_t sum(std::uint32_t a, std::uint32_t b) { return a > kUnbounded - b ? kUnbounded : a + b; }
std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t all = std::uint64_t{a} * b;
  return a != 0 && b == kUnbounded ? kUnbounded
                                   : static_cast<std::uint32_t>(std::min<std::uint64_t>(all, kUnbounded));
}

}  // namespace

LengthRange lengths_of(const Automaton& automaton) {
  const std::size_t n = automaton.states.size();
  LengthRange range{kUnbounded, 0};
  // Finds the shortest length to each state. An edge that begins no code point adds no length, so its target
  // is visited first.
  std::vector<std::uint32_t> least(n, kUnbounded);
  std::deque<std::pair<StateId, std::uint32_t>> queue{{0, 0}};
  while (!queue.empty()) {
    const auto [state, length] = queue.front();
    queue.pop_front();
    if (least[state] != kUnbounded) continue;
    least[state] = length;
    if (automaton.states[state].accepting) range.min = std::min(range.min, length);
    for (const Edge& edge : automaton.states[state].edges) {
      if (begins_code_point(edge.low))
        queue.emplace_back(edge.target, length + 1);
      else
        queue.emplace_front(edge.target, length);
    }
  }
  // Each state leads to an accepting state. So if there is a cycle, lengths are unbounded.
  const std::vector<StateId> order = reverse_topological(automaton);
  if (order.empty()) return {range.min, kUnbounded};
  std::vector<std::uint32_t> most(n, 0);
  for (const StateId state : order)
    for (const Edge& edge : automaton.states[state].edges)
      most[state] = std::max(most[state], most[edge.target] + begins_code_point(edge.low));
  return {range.min, most[0]};
}

std::optional<Automaton> of_length(const Automaton& automaton, LengthRange wanted, std::size_t states_max) {
  const bool bounded = wanted.max != kUnbounded;
  // Processes one length after another. So the numbers of states are stored for only two lengths at a time.
  std::vector<StateId> here(automaton.states.size(), kNoState), next = here;
  std::vector<StateId> of_here, of_next;
  Automaton out;
  const auto intern = [&](StateId state, std::uint32_t length, bool further) {
    StateId& number = further ? next[state] : here[state];
    if (number == kNoState) {
      number = static_cast<StateId>(out.states.size());
      out.states.push_back({automaton.states[state].accepting && length >= wanted.min, {}});
      (further ? of_next : of_here).push_back(state);
    }
    return number;
  };
  intern(0, 0, false);
  for (std::uint32_t length = 0; !of_here.empty(); ++length) {
    // If there is no maximum, lengths above the minimum use the states of the minimum.
    const bool last = !bounded && length == wanted.min;
    for (std::size_t i = 0; i < of_here.size(); ++i) {
      if (out.states.size() > states_max) return std::nullopt;
      const StateId from = of_here[i], number = here[from];
      for (Edge edge : automaton.states[from].edges) {
        const bool begins = begins_code_point(edge.low);
        if (begins && bounded && length == wanted.max) continue;
        edge.target = intern(edge.target, length + begins, begins && !last);
        out.states[number].edges.push_back(edge);
      }
    }
    for (const StateId state : of_here) here[state] = kNoState;
    of_here.clear();
    of_here.swap(of_next);
    here.swap(next);
  }
  return trim(out);
}

namespace {

// Returns the lengths of each expression; nullopt: unknown.
std::vector<std::optional<LengthRange>> lengths_of(const Grammar& grammar) {
  std::vector<std::optional<LengthRange>> all(grammar.exprs.size());
  for (ExprId id = 0; id < all.size(); ++id) {
    const auto& node = grammar.exprs[id].node;
    if (const auto* literal = std::get_if<Literal>(&node)) {
      const auto count = static_cast<std::uint32_t>(std::ranges::count_if(
          literal->bytes, [](char c) { return begins_code_point(static_cast<unsigned char>(c)); }));
      all[id] = {count, count};
    } else if (const auto* set = std::get_if<ByteSet>(&node)) {
      bool first = false, further = false;
      set->for_each([&](std::uint8_t byte) { (begins_code_point(byte) ? first : further) = true; });
      if (first != further) all[id] = LengthRange{first, first};
    } else if (const auto* leaf = std::get_if<Leaf>(&node)) {
      all[id] = lengths_of(*leaf->automaton);
    } else if (const auto* sequence = std::get_if<Sequence>(&node)) {
      all[id] = LengthRange{0, 0};
      for (const ExprId part : sequence->parts)
        all[id] = all[id] && all[part] ? std::optional(LengthRange{sum(all[id]->min, all[part]->min),
                                                                   sum(all[id]->max, all[part]->max)})
                                       : std::nullopt;
    } else if (const auto* choice = std::get_if<Choice>(&node)) {
      if (!choice->branches.empty()) all[id] = LengthRange{kUnbounded, 0};
      for (const ExprId branch : choice->branches)
        all[id] = all[id] && all[branch]
                      ? std::optional(LengthRange{std::min(all[id]->min, all[branch]->min),
                                                  std::max(all[id]->max, all[branch]->max)})
                      : std::nullopt;
    } else if (const auto* repeat = std::get_if<Repeat>(&node)) {
      if (const auto& body = all[repeat->body])
        all[id] = LengthRange{product(body->min, repeat->min), product(body->max, repeat->max)};
    }
  }
  return all;
}

class LengthCut {
 public:
  explicit LengthCut(Grammar& grammar) : grammar_(grammar), lengths_(lengths_of(grammar)) {}

  std::optional<ExprId> cut(ExprId id, LengthRange wanted) {
    if (!lengths_[id]) return std::nullopt;
    if (wanted.contains(*lengths_[id])) return id;
    if (lengths_[id]->min > wanted.max || lengths_[id]->max < wanted.min) return grammar_.nothing();
    const auto node = grammar_.exprs[id].node;  // a copy, because adding expressions moves the original
    if (const auto* choice = std::get_if<Choice>(&node)) {
      std::vector<ExprId> branches;
      for (const ExprId branch : choice->branches) {
        const auto part = cut(branch, wanted);
        if (!part) return std::nullopt;
        branches.push_back(*part);
      }
      return grammar_.choice(std::move(branches));
    }
    if (const auto* sequence = std::get_if<Sequence>(&node)) {
      std::vector<LengthRange> lengths;
      for (const ExprId part : sequence->parts) lengths.push_back(*lengths_[part]);
      return cut_sequence(sequence->parts, std::move(lengths), wanted);
    }
    const auto* repeat = std::get_if<Repeat>(&node);
    if (!repeat || lengths_[repeat->body]->min != 1 || lengths_[repeat->body]->max != 1) return std::nullopt;
    return grammar_.repeat(repeat->body, std::max(repeat->min, wanted.min),
                           std::min(repeat->max, wanted.max));
  }

 private:
  static constexpr int kTriesMax = 32;

  std::optional<ExprId> cut_sequence(std::vector<ExprId> parts, std::vector<LengthRange> lengths,
                                     LengthRange wanted) {
    // For each possible length of the part with the second widest range, the widest part gets the remaining
    // length.
    const auto width = [&](std::size_t i) { return lengths[i].max - lengths[i].min; };
    std::size_t most = 0, next = 0;
    std::uint32_t fixed = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (width(i) == 0) fixed = sum(fixed, lengths[i].min);
      if (width(i) > width(most)) most = i;
    }
    next = most == 0 ? parts.size() - 1 : 0;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (i != most && width(i) > width(next)) next = i;
    if (fixed > wanted.max || (width(most) == 0 && fixed < wanted.min)) return grammar_.nothing();
    if (width(most) == 0) return grammar_.sequence(std::move(parts));
    if (next == most || width(next) == 0) {
      const LengthRange rest{wanted.min - std::min(wanted.min, fixed),
                             wanted.max == kUnbounded ? kUnbounded : wanted.max - fixed};
      const auto part = cut(parts[most], rest);
      if (!part) return std::nullopt;
      parts[most] = *part;
      return grammar_.sequence(std::move(parts));
    }
    std::vector<ExprId> branches;
    for (std::uint32_t length = lengths[next].min; length <= lengths[next].max; ++length) {
      if (++tries_ > kTriesMax) return std::nullopt;
      const auto part = cut(parts[next], {length, length});
      if (!part) return std::nullopt;
      std::vector<ExprId> same = parts;
      std::vector<LengthRange> same_lengths = lengths;
      same[next] = *part;
      same_lengths[next] = {length, length};
      const auto branch = cut_sequence(std::move(same), std::move(same_lengths), wanted);
      if (!branch) return std::nullopt;
      branches.push_back(*branch);
    }
    return grammar_.choice(std::move(branches));
  }

  Grammar& grammar_;
  const std::vector<std::optional<LengthRange>> lengths_;
  int tries_ = 0;
};

}  // namespace

std::optional<ExprId> of_length(Grammar& grammar, ExprId expr, LengthRange wanted) {
  return LengthCut(grammar).cut(expr, wanted);
}

}  // namespace octavo::grammar
