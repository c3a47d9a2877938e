#include "grammar/compiled_grammar.h"

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

Result<std::shared_ptr<const CompiledGrammar>> CompiledGrammar::compile(
    Grammar grammar, std::shared_ptr<const Vocabulary> vocabulary, std::size_t parser_bytes_max) {
  TRY(const Grammar optimized, within_limits(optimize(std::move(grammar))));
  TRY(Tables tables, make_tables(optimized, *vocabulary));
  std::shared_ptr<const CompiledGrammar> compiled(
      new CompiledGrammar(std::move(tables), std::move(vocabulary), parser_bytes_max));
  // The first look at the grammar: what cannot even begin is refused here.
  ParseStates& states = compiled->table_->states();
  states.accepting(states.start());
  if (states.exhausted())
    return failure(
        ErrorCode::invalid_argument,
        "the grammar has too many ways to begin a text: finding them takes more than {} units of work",
        kWorkMax);
  compiled->table_->look_ahead();
  compiled->learned_bytes_ = compiled->table_->byte_size();
  return compiled;
}

}  // namespace octavo::grammar
