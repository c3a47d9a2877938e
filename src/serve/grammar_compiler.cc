#include "serve/grammar_compiler.h"

#include <utility>

#include "base/clock.h"

namespace octavo {
namespace {

constexpr std::size_t kCacheBytesMax = std::size_t{256} << 20;

constexpr std::size_t kMaskCacheBytesMax = std::size_t{64} << 20;

Result<std::shared_ptr<const grammar::Vocabulary>> vocabulary_of(const Tokenizer& tokenizer,
                                                                 std::vector<TokenId> eos_ids) {
  std::vector<std::string> tokens(static_cast<std::size_t>(tokenizer.vocab_size()));
  std::vector<TokenId> special;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    const bool named = tokenizer.is_special(id);
    if (named) special.push_back(id);
    tokens[static_cast<std::size_t>(id)] =
        (named ? tokenizer.token(id) : tokenizer.token_bytes(id)).value_or("");
  }
  std::erase_if(eos_ids, [&](TokenId id) { return id >= tokenizer.vocab_size(); });
  return grammar::Vocabulary::make(std::move(tokens), std::move(special), std::move(eos_ids),
                                   kMaskCacheBytesMax, [&tokenizer](std::string_view text) {
                                     return tokenizer.encode(text, false).value_or(std::vector<TokenId>{});
                                   });
}

}  // namespace

Result<grammar::GrammarCache*> GrammarCompiler::cache() const {
  const std::lock_guard lock(mutex_);
  if (!cache_) {
    TRY(vocabulary_, vocabulary_of(tokenizer_, eos_ids_));
    cache_ = std::make_unique<grammar::GrammarCache>(vocabulary_, kCacheBytesMax);
  }
  return cache_.get();
}

Result<grammar::GrammarSource> GrammarCompiler::source_of(const openai::StructuredOutput& output) const {
  grammar::GrammarSource source = output.source;
  if (const auto& calls = output.strict_calls) {
    TRY(source.text, grammar::tool_call_tag(calls->tools, grammar::ToolChoice::free, calls->parallel,
                                            *calls->dialect, *vocabulary_));
  }
  return source;
}

Result<std::shared_ptr<const grammar::CompiledGrammar>> GrammarCompiler::compile(
    const openai::StructuredOutput& output) const {
  TRY(grammar::GrammarCache * grammars, cache());
  const std::int64_t began = now_us();
  auto source = source_of(output);
  auto compiled = source ? grammars->compile(*source) : std::unexpected(std::move(source.error()));
  compile_us_ += now_us() - began;
  if (compiled) return *std::move(compiled);
  Error error = std::move(compiled.error());
  error.code = ErrorCode::invalid_argument;
  error.field = output.field;
  return std::unexpected(std::move(error));
}

GrammarStats GrammarCompiler::stats() const {
  const std::lock_guard lock(mutex_);
  if (!cache_) return {};
  const grammar::GrammarCache::Stats cache = cache_->stats();
  return {.cache_hits = static_cast<std::int64_t>(cache.hits),
          .cache_misses = static_cast<std::int64_t>(cache.misses),
          .cache_bytes = static_cast<std::int64_t>(cache.bytes),
          .compile_us = compile_us_};
}

}  // namespace octavo
