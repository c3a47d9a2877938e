#include "engine/loop/grammar_compiler.h"

#include <utility>

#include "base/clock.h"
#include "base/out_of_memory.h"
#include "grammar/matcher.h"

namespace octavo {
namespace {

constexpr std::size_t kCacheBytesMax = std::size_t{256} << 20;

}  // namespace

GrammarCompiler::GrammarCompiler(MakeVocabulary vocabulary, Done done)
    : make_vocabulary_(std::move(vocabulary)),
      done_(std::move(done)),
      thread_([this](const Task& task) { run(task); }) {}

void GrammarCompiler::post(RequestId id, grammar::GrammarSource source) {
  thread_.post({id, std::move(source)});
}

std::shared_ptr<const grammar::CompiledGrammar> GrammarCompiler::known(const grammar::GrammarSource& source) {
  const std::lock_guard lock(mutex_);
  return cache_ ? cache_->find(source) : nullptr;
}

void GrammarCompiler::cancel(RequestId id) {
  thread_.forget([&](const Task& task) { return task.id == id; });
}

void GrammarCompiler::add_stats(EngineStats& stats) const {
  const std::lock_guard lock(mutex_);
  if (!cache_) return;
  const grammar::GrammarCache::Stats cache = cache_->stats();
  stats.grammars.cache_hits = static_cast<std::int64_t>(cache.hits);
  stats.grammars.cache_misses = static_cast<std::int64_t>(cache.misses);
  stats.grammars.cache_bytes = static_cast<std::int64_t>(cache.bytes);
  stats.grammars.compile_us = compile_us_;
}

void GrammarCompiler::run(const Task& task) {
  const std::int64_t began = now_us();
  CompiledGrammar compiled = within_memory([&] {
    CompiledGrammar made = compile(task.source);
    if (!made) {
      made.error().code = ErrorCode::invalid_argument;
      made.error().field = task.source.field;
    }
    return made;
  });
  {
    const std::lock_guard lock(mutex_);
    compile_us_ += now_us() - began;
  }
  done_(task.id, std::move(compiled));
  if (!cache_ || warm_ || !thread_.idle()) return;
  // While the thread is idle, it precomputes the masks that most grammars share. A failure because of
  // memory does not matter.
  warm_ = true;
  (void)within_memory([&]() -> Result<> {
    cache_->warm_up();
    return {};
  });
}

CompiledGrammar GrammarCompiler::compile(const grammar::GrammarSource& source) {
  if (!cache_) {
    if (!make_vocabulary_)
      return failure(ErrorCode::unsupported,
                     "this engine has no vocabulary, so it does not support grammars");
    TRY(auto vocabulary, make_vocabulary_());
    const std::lock_guard lock(mutex_);
    cache_ = std::make_unique<grammar::GrammarCache>(std::move(vocabulary), kCacheBytesMax);
  }
  TRY(auto compiled, cache_->compile(source));
  // Computes the first mask, which is cached with the grammar.
  std::vector<std::int32_t> mask(compiled->vocabulary().mask_words());
  TRY_VOID(grammar::Matcher(compiled).fill_mask(mask));
  return compiled;
}

}  // namespace octavo
