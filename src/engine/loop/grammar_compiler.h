// Compiles the grammars of requests on a separate thread, so that a large grammar delays neither steps nor
// requests without a grammar. Requests with equal grammars share the compiled grammar.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "engine/loop/task_thread.h"
#include "grammar/grammar_cache.h"
#include "request/engine_stats.h"
#include "request/request.h"

namespace octavo {

// Creates the vocabulary of grammars. Called once, for the first request with a grammar.
using MakeVocabulary = std::function<Result<std::shared_ptr<const grammar::Vocabulary>>()>;

using CompiledGrammar = Result<std::shared_ptr<const grammar::CompiledGrammar>>;

class GrammarCompiler {
 public:
  using Done = std::function<void(RequestId, CompiledGrammar)>;

  // `done` is called on the compiler's thread, in the order of the post() calls. The destructor waits for
  // the running compilation and drops all waiting ones.
  GrammarCompiler(MakeVocabulary vocabulary, Done done);

  // Queues a grammar and returns immediately. `done` gets invalid_argument, with the field of the source,
  // if the grammar is invalid.
  void post(RequestId id, grammar::GrammarSource source);
  // Returns the cached grammar, or null if post() must be called.
  std::shared_ptr<const grammar::CompiledGrammar> known(const grammar::GrammarSource& source);
  // Drops the request's grammar if its compilation has not started.
  void cancel(RequestId id);

  void add_stats(EngineStats& stats) const;

 private:
  struct Task {
    RequestId id;
    grammar::GrammarSource source;
  };

  void run(const Task& task);
  CompiledGrammar compile(const grammar::GrammarSource& source);

  const MakeVocabulary make_vocabulary_;
  const Done done_;

  mutable std::mutex mutex_;  // guards compile_us_ and cache_; only the compiler's thread sets cache_
  std::unique_ptr<grammar::GrammarCache> cache_;
  std::int64_t compile_us_ = 0;
  bool warm_ = false;  // used only on the compiler's thread

  TaskThread<Task> thread_;
};

}  // namespace octavo
