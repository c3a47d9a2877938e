#include "grammar/compiled_grammar.h"

#include <algorithm>
#include <utility>

#include "grammar/limits.h"
#include "grammar/passes/passes.h"

namespace octavo::grammar {

CompiledGrammar::CompiledGrammar(Tables tables, std::shared_ptr<const Vocabulary> vocabulary,
                                 std::size_t parser_bytes_max)
    : tables_(std::move(tables)),
      vocabulary_(std::move(vocabulary)),
      parser_bytes_max_(parser_bytes_max),
      tables_bytes_(tables_.byte_size()),
      table_(std::make_unique<MaskTable>(tables_, *vocabulary_)) {}

std::size_t CompiledGrammar::byte_size() const {
  return sizeof *this + tables_bytes_ + learned_bytes_.load(std::memory_order_relaxed);
}

std::size_t CompiledGrammar::parser_bytes_allowed(std::size_t text_tokens) const {
  longest_text_ = std::max(longest_text_, text_tokens);
  return parser_bytes_max_ + (tables_.any_orders.empty() ? 0 : longest_text_ * kParserBytesPerToken);
}

Result<std::shared_ptr<const CompiledGrammar>> CompiledGrammar::compile(
    Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary, std::size_t parser_bytes_max) {
  TRY(const Grammar optimized, within_limits(optimize(std::move(grammar))));
  TRY(Tables tables, make_tables(optimized, *vocabulary));
  return begin(std::move(tables), std::move(vocabulary), parser_bytes_max);
}

Result<std::shared_ptr<const CompiledGrammar>> CompiledGrammar::begin(
    Tables tables, std::shared_ptr<const Vocabulary> vocabulary, std::size_t parser_bytes_max) {
  std::shared_ptr<const CompiledGrammar> compiled(
      new CompiledGrammar(std::move(tables), std::move(vocabulary), parser_bytes_max));
  // Computes the start configuration. Returns an error if this takes too much work, because the grammar is
  // too ambiguous.
  ParseStates& states = compiled->table_->states();
  states.accepting(states.start());
  if (states.exhausted())
    return failure(
        ErrorCode::invalid_argument,
        "finding the ways to begin a text takes more than {} units of work; use a less ambiguous grammar",
        kWorkMax);
  compiled->table_->look_ahead();
  compiled->learned_bytes_ = compiled->table_->byte_size();
  return compiled;
}

}  // namespace octavo::grammar
