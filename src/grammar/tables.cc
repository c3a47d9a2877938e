#include "grammar/tables.h"

#include <algorithm>

#include "grammar/limits.h"

namespace octavo::grammar {

namespace {

constexpr RuleId kNoRule = UINT32_MAX;

// Automata of all rules with state numbers shifted into one array.
struct Flat {
  std::vector<State> states;
  std::vector<Tables::RuleRow> rules;
};

Result<Flat> flatten(const Grammar& grammar, std::vector<TokenAtom>& atoms) {
  Flat flat;
  std::size_t nfa_states = 0, work = kDeterminizeWorkMax;
  for (const Rule& rule : grammar.rules) {
    Tables::RuleRow row{0, 0, rule.min, rule.max, rule.counted(), false};
    if (rule.counted()) {
      row.body = std::get<Call>(grammar.exprs[rule.body].node).rule;
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
    // A list of texts is deterministic as it is.
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
                     "the grammar needs more than {} automaton states: they run out at {:.200}",
                     kNfaStatesMax, rule.name);
    nfa_states += builder.nfa.nodes.size();
    auto automaton = determinize(builder.nfa, start, accept,
                                 kDfaGrowthMax * builder.nfa.nodes.size() + kDfaSlackStates, work);
    if (!automaton)
      return failure(ErrorCode::invalid_argument,
                     "the automata of the grammar take more than {} steps to build: they run out at {:.200}",
                     kDeterminizeWorkMax, rule.name);
    append(*std::move(automaton));
  }
  return flat;
}

// Which states reach the end of their rule. An edge counts when passes(edge) and, for calls, when the called
// rule reaches its own end. The least solution, found backwards from the accepting states.
template <class Passes>
std::vector<bool> reaches_end(const Flat& flat, std::vector<bool>& rule_ends, Passes&& passes) {
  const Incoming sources(flat.states, [&](StateId, const Edge& edge) { return passes(edge); });
  std::vector<std::vector<RuleId>> counters(flat.rules.size());
  std::vector<RuleId> starts(flat.states.size(), kNoRule);  // the rule that begins at a state
  std::vector<std::vector<StateId>> waiting(flat.rules.size());

  std::vector<bool> live(flat.states.size(), false);
  rule_ends.assign(flat.rules.size(), false);
  std::vector<StateId> work;
  std::vector<RuleId> rule_work;
  const auto mark = [&](StateId s) {
    if (live[s]) return;
    live[s] = true;
    work.push_back(s);
  };
  const auto mark_rule = [&](RuleId r) {
    if (rule_ends[r]) return;
    rule_ends[r] = true;
    rule_work.push_back(r);
  };
  for (RuleId r = 0; r < flat.rules.size(); ++r) {
    const auto& rule = flat.rules[r];
    if (!rule.counted) {
      starts[rule.start] = r;
    } else {
      counters[rule.body].push_back(r);
      if (rule.min == 0) mark_rule(r);
    }
  }
  for (StateId s = 0; s < flat.states.size(); ++s)
    if (flat.states[s].accepting) mark(s);
  while (!work.empty() || !rule_work.empty()) {
    if (!rule_work.empty()) {
      const RuleId r = rule_work.back();
      rule_work.pop_back();
      for (const StateId s : waiting[r]) mark(s);
      for (const RuleId c : counters[r]) mark_rule(c);
      continue;
    }
    const StateId s = work.back();
    work.pop_back();
    if (starts[s] != kNoRule) mark_rule(starts[s]);
    for (const Incoming::Source& source : sources.of(s)) {
      if (source.edge->symbol == Symbol::call && !rule_ends[source.edge->ref])
        waiting[source.edge->ref].push_back(source.from);
      else
        mark(source.from);
    }
  }
  return live;
}

Result<std::vector<TokenId>> resolve(const std::vector<TokenAtom>& atoms, const Vocabulary& vocabulary) {
  std::vector<TokenId> ids;
  for (const TokenAtom& atom : atoms) {
    const TokenId id = atom.text.empty() ? atom.id : vocabulary.special_named(atom.text);
    if (!vocabulary.contains(id)) {
      if (atom.text.empty())
        return failure(ErrorCode::invalid_argument, "the grammar asks for token {}, the vocabulary has {}",
                       atom.id, vocabulary.size());
      return failure(ErrorCode::invalid_argument,
                     "the grammar asks for the special token '{}', which the vocabulary lacks", atom.text);
    }
    ids.push_back(id);
  }
  return ids;
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
  return states.size() * sizeof(StateRow) + edges.size() * sizeof(Edge) + rules.size() * sizeof(RuleRow);
}

Result<Tables> make_tables(const Grammar& grammar, const Vocabulary& vocabulary) {
  std::vector<TokenAtom> atoms;
  TRY(Flat flat, flatten(grammar, atoms));

  std::vector<bool> productive, nullable;
  const std::vector<bool> live = reaches_end(flat, productive, [](const Edge&) { return true; });
  if (!productive[grammar.root]) return failure(ErrorCode::invalid_argument, "no text matches the grammar");
  reaches_end(flat, nullable, [](const Edge& edge) { return edge.symbol == Symbol::call; });

  Tables tables;
  tables.root = grammar.root;
  TRY(tables.tokens, resolve(atoms, vocabulary));
  tables.rules = flat.rules;
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
    if (!rule.counted) continue;
    // Empty repetitions can always fill up a missing count.
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
