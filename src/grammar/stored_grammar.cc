// Serializes compiled grammars: a header, then the tables.
#include <algorithm>
#include <vector>

#include "base/pack.h"
#include "grammar/compiled_grammar.h"
#include "grammar/limits.h"

namespace octavo::grammar {

namespace {

constexpr std::uint64_t kMagic = 0x314D4D4152474F4F;  // "OOGRAMM1"
constexpr std::uint64_t kVersion = layout_hash<Tables>();

struct StoredHeader {
  std::uint64_t magic = kMagic, version = kVersion;
  Hash128 vocabulary, tables;
};

Hash128 hash_of(std::string_view bytes) {
  return hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(std::span(bytes)), 0);
}

Hash128 hash_of(const Vocabulary& vocabulary) {
  std::string text;
  Packer packer(text);
  for (TokenId id = 0; id < vocabulary.size(); ++id) packer.put(std::string(vocabulary.bytes(id)));
  packer.put(vocabulary.special());
  packer.put(vocabulary.eos());
  return hash_of(text);
}

// Returns true if the states of each automaton and the edges of each state are contiguous, the edges are
// sorted by symbol, and each edge leads to a state of the same automaton.
bool is_in_order(const Tables& t) {
  std::vector<StateId> begins;
  for (const Tables::RuleRow& rule : t.rules)
    if (rule.kind == Tables::RuleRow::Kind::automaton) begins.push_back(rule.start);
  begins.push_back(static_cast<StateId>(t.states.size()));
  if (begins.front() != 0) return false;
  std::uint32_t at = 0;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    if (begins[i] >= begins[i + 1]) return false;
    for (StateId s = begins[i]; s < begins[i + 1]; ++s) {
      const Tables::StateRow& row = t.states[s];
      if (row.edges != at) return false;
      for (; at < row.tokens_end; ++at) {
        const Edge& edge = t.edges[at];
        const Symbol symbol = at < row.bytes_end   ? Symbol::bytes
                              : at < row.calls_end ? Symbol::call
                                                   : Symbol::token;
        if (edge.symbol != symbol || edge.target < begins[i] || edge.target >= begins[i + 1]) return false;
      }
    }
  }
  return at == t.edges.size();
}

bool is_complete(const Tables& t, const Vocabulary& vocabulary) {
  using Kind = Tables::RuleRow::Kind;
  const auto rule = [&](std::uint32_t id) { return id < t.rules.size(); };
  const auto row = [&](const Tables::RuleRow& r) {
    return r.kind == Kind::automaton ? r.start < t.states.size()
           : r.kind == Kind::counted ? rule(r.body)
                                     : r.kind == Kind::any_order && r.body < t.any_orders.size();
  };
  const auto state = [&](const Tables::StateRow& s) {
    return s.edges <= s.bytes_end && s.bytes_end <= s.calls_end && s.calls_end <= s.tokens_end &&
           s.tokens_end <= t.edges.size();
  };
  const auto edge = [&](const Edge& e) {
    const bool leads = e.symbol == Symbol::bytes  ? e.low <= e.high
                       : e.symbol == Symbol::call ? rule(e.ref)
                                                  : e.symbol == Symbol::token && e.ref < t.tokens.size();
    return leads && e.target < t.states.size();
  };
  const auto parts = [&](const Tables::AnyOrder& a) {
    return std::ranges::all_of(a.parts, rule) && rule(a.separator) && (!a.others || rule(*a.others)) &&
           a.parts.size() <= kAnyOrderMax && a.required.size() == a.no_parts().size() && a.min > 0;
  };
  const auto token = [&](TokenId id) { return vocabulary.contains(id); };
  const auto byte_class = [&](std::uint8_t c) { return c < t.classes; };
  return rule(t.root) && std::ranges::all_of(t.rules, row) && std::ranges::all_of(t.states, state) &&
         std::ranges::all_of(t.edges, edge) && std::ranges::all_of(t.any_orders, parts) &&
         std::ranges::all_of(t.tokens, token) && std::ranges::all_of(t.byte_class, byte_class) &&
         t.classes <= 256 && is_in_order(t);
}

}  // namespace

std::string CompiledGrammar::to_bytes() const {
  std::string tables, out;
  Packer(tables).put(tables_);
  Packer(out).put(StoredHeader{.vocabulary = hash_of(*vocabulary_), .tables = hash_of(tables)});
  return out + tables;
}

Result<std::shared_ptr<const CompiledGrammar>> CompiledGrammar::from_bytes(
    std::string_view bytes, std::shared_ptr<const Vocabulary> vocabulary, std::size_t parser_bytes_max) {
  constexpr std::size_t kHeaderBytes = sizeof(StoredHeader);
  StoredHeader header;
  Unpacker(std::as_bytes(std::span(bytes))).get(header);
  if (bytes.size() < kHeaderBytes || header.magic != kMagic)
    return failure(ErrorCode::corrupt, "the bytes are not a compiled grammar");
  if (header.version != kVersion)
    return failure(ErrorCode::unsupported,
                   "the grammar has version {:x}, this library reads {:x}: compile it again", header.version,
                   kVersion);
  if (header.vocabulary != hash_of(*vocabulary))
    return invalid("vocabulary", "the grammar was compiled for another vocabulary: compile it again");
  const std::string_view stored = bytes.substr(kHeaderBytes);
  Tables tables;
  Unpacker unpacker(std::as_bytes(std::span(stored)));
  unpacker.get(tables);
  if (header.tables != hash_of(stored) || !unpacker.complete() || !is_complete(tables, *vocabulary))
    return failure(ErrorCode::corrupt, "the bytes of the compiled grammar are damaged: compile it again");
  return begin(std::move(tables), std::move(vocabulary), parser_bytes_max);
}

}  // namespace octavo::grammar
