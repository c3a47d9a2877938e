// Grammars for requests that ask for structured output: compiled on threads of their own, so that a large one
// holds up nobody else, and shared by all requests that ask for the same.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "grammar/grammar_cache.h"
#include "request/sampling_params.h"
#include "serve/metrics.h"
#include "serve/openai/structured_output.h"
#include "text/tokenizer.h"

namespace octavo {

class GrammarCompiler {
 public:
  // The parts outlive this. eos_ids: the tokens that end a text.
  GrammarCompiler(const Tokenizer& tokenizer, std::vector<TokenId> eos_ids)
      : tokenizer_(tokenizer), eos_ids_(std::move(eos_ids)) {}

  // Any thread; takes as long as the grammar is large. Errors name the request's field, and what in it cannot
  // be enforced.
  Result<std::shared_ptr<const grammar::CompiledGrammar>> compile(
      const openai::StructuredOutput& output) const;

  GrammarStats stats() const;

 private:
  Result<grammar::GrammarCache*> cache() const;
  Result<grammar::GrammarSource> source_of(const openai::StructuredOutput& output) const;

  const Tokenizer& tokenizer_;
  const std::vector<TokenId> eos_ids_;
  mutable std::atomic<std::int64_t> compile_us_ = 0;
  mutable std::mutex mutex_;
  // Made by the first request that needs them.
  mutable std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  mutable std::unique_ptr<grammar::GrammarCache> cache_;
};

}  // namespace octavo
