#include "grammar/tables.h"

#include <algorithm>

#include "grammar/limits.h"

namespace octavo::grammar {

namespace {

constexpr RuleId kNoRule = UINT32_MAX;

// The states of all automata in one array. An edge's target is an index in this array.
struct Flat {
  std::vector<State> states;
  std::vector<Tables::RuleRow> rules;
  std::vector<Tables::AnyOrder> any_orders;
};

Tables::AnyOrder row_of(const Grammar& grammar, const AnyOrder& parts) {
  const auto called = [&](ExprId call) { return std::get<Call>(grammar.exprs[call].node).rule; };
  Tables::AnyOrder row{{}, {}, {}, called(parts.separator), parts.min, parts.max};
  for (const ExprId part : parts.parts) row.parts.push_back(called(part));
  row.required = row.no_parts();
  for (std::size_t i = 0; i < parts.required.size(); ++i)
    if (parts.required[i]) add_part(row.required, i);
  if (parts.others) row.others = called(*parts.others);
  return row;
}

Result<Flat> flatten(const Grammar& grammar, std::vector<TokenAtom>& atoms) {
  Flat flat;
  std::size_t nfa_states = 0, work = kDeterminizeWorkMax;
  for (const Rule& rule : grammar.rules) {
    using Kind = Tables::RuleRow::Kind;
    Tables::RuleRow row{Kind::automaton, false, 0, 0, rule.min, rule.max};
    if (rule.counted()) {
      row.kind = Kind::counted;
      row.body = std::get<Call>(grammar.exprs[rule.body].node).rule;
      flat.rules.push_back(row);
      continue;
    }
    if (const auto* parts = std::get_if<AnyOrder>(&grammar.exprs[rule.body].node)) {
      row.kind = Kind::any_order;
      row.body = static_cast<std::uint32_t>(flat.any_orders.size());
      flat.any_orders.push_back(row_of(grammar, *parts));
      flat.rules.push_back(row);
      continue;
    }
    row.start = static_cast<StateId>(flat.states.size());
    const auto append = [&](Automaton automaton) {
      for (State& state : automaton.states) {
        for (Edge& edge : state.edges) edge.target += row.start;
        flat.states.push_back(std::move(state));
      }
      flat.rules.push_back(row);
    };
    // A rule that is only a deterministic automaton, such as a list of texts, is used as it is.
    if (const auto* leaf = std::get_if<Leaf>(&grammar.exprs[rule.body].node);
        leaf && leaf->automaton->deterministic &&
        flat.states.size() + leaf->automaton->states.size() <= kNfaStatesMax) {
      append(*leaf->automaton);
      continue;
    }
    NfaBuilder builder{grammar, {}, kNfaStatesMax - nfa_states, &atoms};
    const StateId start = builder.nfa.add(), accept = builder.nfa.add();
    if (!builder.build(rule.body, start, accept))
      return failure(ErrorCode::invalid_argument,
                     "the grammar needs more than {} states; shorten it (the limit is reached in {:.200})",
                     kNfaStatesMax, rule.name);
    nfa_states += builder.nfa.nodes.size();
    auto automaton = determinize(builder.nfa, start, accept,
                                 kDfaGrowthMax * builder.nfa.nodes.size() + kDfaSlackStates, work);
    if (!automaton)
      return failure(
          ErrorCode::invalid_argument,
          "the grammar takes more than {} steps to compile; shorten it (the limit is reached in {:.200})",
          kDeterminizeWorkMax, rule.name);
    append(*std::move(automaton));
  }
  return flat;
}

// Finds the states that can reach the end of their rule, and the rules that can end. Searches backwards from
// the accepting states. Follows only edges for which passes(edge) is true, and calls only if the called rule
// can end.
class ReachesEnd {
 public:
  template <class Passes>
  ReachesEnd(const Flat& flat, Passes&& passes)
      : live(flat.states.size(), false),
        rule_ends(flat.rules.size(), false),
        flat_(flat),
        sources_(flat.states, [&](StateId, const Edge& edge) { return passes(edge); }),
        users_(flat.rules.size()),
        starts_(flat.states.size(), kNoRule),
        waiting_(flat.rules.size()) {
    for (RuleId r = 0; r < flat.rules.size(); ++r) add(r);
    for (StateId s = 0; s < flat.states.size(); ++s)
      if (flat.states[s].accepting) mark(s);
    while (!work_.empty() || !rule_work_.empty()) step();
  }

  std::vector<bool> live, rule_ends;

 private:
  using Kind = Tables::RuleRow::Kind;

  void add(RuleId r) {
    const Tables::RuleRow& rule = flat_.rules[r];
    if (rule.kind == Kind::automaton) starts_[rule.start] = r;
    if (rule.kind == Kind::counted) {
      users_[rule.body].push_back(r);
      if (rule.min == 0) mark_rule(r);
    }
    if (rule.kind == Kind::any_order) {
      const Tables::AnyOrder& parts = flat_.any_orders[rule.body];
      for (const RuleId part : parts.parts) users_[part].push_back(r);
      if (parts.others) users_[*parts.others].push_back(r);
    }
  }

  void step() {
    if (!rule_work_.empty()) {
      const RuleId r = rule_work_.back();
      rule_work_.pop_back();
      for (const StateId s : waiting_[r]) mark(s);
      for (const RuleId user : users_[r])
        if (flat_.rules[user].kind == Kind::counted || has_enough_parts(user)) mark_rule(user);
      return;
    }
    const StateId s = work_.back();
    work_.pop_back();
    if (starts_[s] != kNoRule) mark_rule(starts_[s]);
    for (const Incoming::Source& source : sources_.of(s)) {
      if (source.edge->symbol == Symbol::call && !rule_ends[source.edge->ref])
        waiting_[source.edge->ref].push_back(source.from);
      else
        mark(source.from);
    }
  }

  bool has_enough_parts(RuleId rule) const {
    const Tables::AnyOrder& row = flat_.any_orders[flat_.rules[rule].body];
    std::uint32_t possible = row.others && rule_ends[*row.others] ? row.min : 0, required = 0;
    for (std::size_t i = 0; i < row.parts.size(); ++i) {
      const bool must = contains(row.required, i);
      if (must && !rule_ends[row.parts[i]]) return false;
      required += must;
      possible += rule_ends[row.parts[i]];
    }
    return row.min <= row.max && possible >= row.min && required <= row.max;
  }

  void mark(StateId s) {
    if (live[s]) return;
    live[s] = true;
    work_.push_back(s);
  }
  void mark_rule(RuleId r) {
    if (rule_ends[r]) return;
    rule_ends[r] = true;
    rule_work_.push_back(r);
  }

  const Flat& flat_;
  const Incoming sources_;
  // for each rule, the counted rules and AnyOrder rules that call it
  std::vector<std::vector<RuleId>> users_;
  std::vector<RuleId> starts_;
  std::vector<std::vector<StateId>> waiting_;
  std::vector<StateId> work_;
  std::vector<RuleId> rule_work_;
};

Result<std::vector<TokenId>> resolve(const std::vector<TokenAtom>& atoms, const Vocabulary& vocabulary) {
  std::vector<TokenId> ids;
  for (const TokenAtom& atom : atoms) {
    const TokenId id = atom.text.empty() ? atom.id : vocabulary.special_named(atom.text);
    if (!vocabulary.contains(id)) {
      if (atom.text.empty())
        return failure(
            ErrorCode::invalid_argument,
            "the grammar uses token number {}, but the vocabulary has {} tokens; correct the number", atom.id,
            vocabulary.size());
      return failure(
          ErrorCode::invalid_argument,
          "the grammar uses the special token '{}', which the vocabulary does not have; correct its name",
          atom.text);
    }
    ids.push_back(id);
  }
  return ids;
}

std::vector<Tables::AnyOrder> possible_parts(std::vector<Tables::AnyOrder> rows,
                                             const std::vector<bool>& productive) {
  for (Tables::AnyOrder& row : rows) {
    if (row.others && !productive[*row.others]) row.others.reset();
    PartSet required = row.no_parts();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < row.parts.size(); ++i) {
      if (!productive[row.parts[i]]) continue;
      if (contains(row.required, i)) add_part(required, kept);
      row.parts[kept++] = row.parts[i];
    }
    row.parts.resize(kept);
    row.required = std::move(required);
  }
  return rows;
}

void number_byte_classes(Tables& tables) {
  std::array<bool, 257> cut{};
  for (const Edge& edge : tables.edges)
    if (edge.symbol == Symbol::bytes) cut[edge.low] = cut[edge.high + 1u] = true;
  int current = 0;
  for (unsigned b = 0; b < 256; ++b) {
    if (b > 0 && cut[b]) ++current;
    tables.byte_class[b] = static_cast<std::uint8_t>(current);
  }
  tables.classes = current + 1;
}

}  // namespace

std::size_t Tables::byte_size() const {
  std::size_t parts = 0;
  for (const AnyOrder& row : any_orders) parts += sizeof row + row.parts.size() * sizeof(RuleId);
  return states.size() * sizeof(StateRow) + edges.size() * sizeof(Edge) + rules.size() * sizeof(RuleRow) +
         parts;
}

Result<Tables> make_tables(const Grammar& grammar, const Vocabulary& vocabulary) {
  std::vector<TokenAtom> atoms;
  TRY(Flat flat, flatten(grammar, atoms));

  const ReachesEnd ends(flat, [](const Edge&) { return true; });
  const std::vector<bool>&live = ends.live, &productive = ends.rule_ends;
  if (!productive[grammar.root])
    return failure(ErrorCode::invalid_argument,
                   "no text matches the grammar, because its recursion never ends; add an alternative "
                   "without recursion");
  const ReachesEnd without_reading(flat, [](const Edge& edge) { return edge.symbol == Symbol::call; });
  const std::vector<bool>& nullable = without_reading.rule_ends;

  Tables tables;
  tables.root = grammar.root;
  TRY(tables.tokens, resolve(atoms, vocabulary));
  tables.rules = flat.rules;
  tables.any_orders = possible_parts(std::move(flat.any_orders), productive);
  std::vector<bool> opens_unique(flat.states.size(), false);
  for (RuleId r = 0; r < tables.rules.size(); ++r) {
    if (!grammar.rules[r].unique_items) continue;
    tables.unique_items = true;
    for (const Edge& edge : flat.states[tables.rules[r].start].edges)
      if (edge.symbol == Symbol::bytes && edge.low <= '[' && edge.high >= '[') opens_unique[edge.target] = true;
  }
  for (RuleId r = 0; r < tables.rules.size(); ++r) {
    Tables::RuleRow& rule = tables.rules[r];
    rule.nullable = nullable[r];
    if (rule.kind != Tables::RuleRow::Kind::counted) continue;
    // If the body can be empty, empty repetitions can fill up the required number. So the minimum is 0.
    if (nullable[rule.body]) rule.min = 0;
    if (!productive[rule.body]) rule.max = 0;
  }
  std::vector<Edge> edges;
  for (StateId s = 0; s < flat.states.size(); ++s) {
    edges.clear();
    for (const Edge& edge : flat.states[s].edges)
      if (live[s] && live[edge.target] && (edge.symbol != Symbol::call || productive[edge.ref]))
        edges.push_back(edge);
    std::ranges::sort(edges);
    const auto first = static_cast<std::uint32_t>(tables.edges.size());
    const auto end_of = [&](Symbol symbol) {
      return first + static_cast<std::uint32_t>(
                         std::ranges::count_if(edges, [&](const Edge& e) { return e.symbol <= symbol; }));
    };
    tables.states.push_back({first, end_of(Symbol::bytes), end_of(Symbol::call), end_of(Symbol::token),
                             flat.states[s].accepting, opens_unique[s]});
    tables.edges.insert(tables.edges.end(), edges.begin(), edges.end());
  }
  number_byte_classes(tables);
  return tables;
}

}  // namespace octavo::grammar
