// Compiles the grammars of requests, on a thread of its own: a large one holds up neither steps nor requests
// without. Compiled ones are shared by all requests that ask for the same.
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

// The vocabulary that grammars are compiled for; asked for once, by the first request with a grammar.
using MakeVocabulary = std::function<Result<std::shared_ptr<const grammar::Vocabulary>>()>;

using CompiledGrammar = Result<std::shared_ptr<const grammar::CompiledGrammar>>;

class GrammarCompiler {
 public:
  using Done = std::function<void(RequestId, CompiledGrammar)>;

  // `done` is called on the compiler's thread, for each request in turn. The destructor waits for the grammar
  // being compiled, and forgets the others.
  GrammarCompiler(MakeVocabulary vocabulary, Done done);

  // Never waits. Errors, handed to `done`, are invalid_argument and name the source's field.
  void post(RequestId id, grammar::GrammarSource source);
  // What was compiled before, at once; null: post it.
  std::shared_ptr<const grammar::CompiledGrammar> known(const grammar::GrammarSource& source);
  // The request has ended: its grammar is not compiled any more if it still waits.
  void cancel(RequestId id);

  // Fills in the figures of the grammar cache.
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

  mutable std::mutex mutex_;  // guards cache_, which only the thread sets, and compile_us_
  std::unique_ptr<grammar::GrammarCache> cache_;
  std::int64_t compile_us_ = 0;
  bool warm_ = false;  // of the thread

  TaskThread<Task> thread_;
};

}  // namespace octavo
