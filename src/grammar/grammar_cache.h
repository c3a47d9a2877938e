// A cache of compiled grammars by source, shared by all requests and limited in bytes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "grammar/compiled_grammar.h"
#include "grammar/grammar.h"
#include "grammar/grammar_source.h"

namespace octavo::grammar {

Result<Grammar> make_grammar(const GrammarSource& source);

// Thread-safe. If several threads request the same source, it is compiled once.
class GrammarCache {
 public:
  // bytes_max: enforced when a grammar is added. Between additions, each grammar in use can grow by at most
  // parser_bytes_max.
  GrammarCache(std::shared_ptr<const Vocabulary> vocabulary, std::size_t bytes_max,
               std::size_t parser_bytes_max = 8u << 20);

  Result<std::shared_ptr<const CompiledGrammar>> compile(const GrammarSource& source);

  // Returns the compiled grammar, or null if the cache does not contain it.
  std::shared_ptr<const CompiledGrammar> find(const GrammarSource& source);

  // Computes the masks of JSON strings, which all schemas share, before the first request.
  void warm_up();

  struct Stats {
    std::uint64_t hits = 0, misses = 0, evictions = 0;
    std::size_t bytes = 0, entries = 0;
  };
  Stats stats() const;

 private:
  std::shared_ptr<const CompiledGrammar> find(const std::string& key);  // called with the mutex locked
  // Sums the current sizes of the grammars. Above the limit, drops the least recently used ones.
  void evict();

  using Compiled = Result<std::shared_ptr<const CompiledGrammar>>;
  struct Entry {
    std::string key;
    std::shared_ptr<const CompiledGrammar> grammar;
    std::size_t byte_size() const { return grammar->byte_size() + 2 * key.size(); }
  };

  const std::shared_ptr<const Vocabulary> vocabulary_;
  const std::size_t bytes_max_, parser_bytes_max_;
  mutable std::mutex mutex_;
  std::condition_variable compiled_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
  std::unordered_set<std::string> under_way_;
  Stats stats_;
};

}  // namespace octavo::grammar
