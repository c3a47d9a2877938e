// Cache of compiled grammars by source. All requests share it.
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
  // bytes_max: limit for all grammars together, checked when a grammar is added. Afterwards, each grammar in
  // use can grow by up to parser_bytes_max.
  GrammarCache(std::shared_ptr<const Vocabulary> vocabulary, std::size_t bytes_max,
               std::size_t parser_bytes_max = 8u << 20);

  Result<std::shared_ptr<const CompiledGrammar>> compile(const GrammarSource& source);

  // Returns null if the grammar is not in the cache.
  std::shared_ptr<const CompiledGrammar> find(const GrammarSource& source);

  // Before the first request, computes the masks inside JSON strings, which all schemas share.
  void warm_up();

  struct Stats {
    std::uint64_t hits = 0, misses = 0, evictions = 0;
    std::size_t bytes = 0, entries = 0;
  };
  Stats stats() const;

 private:
  std::shared_ptr<const CompiledGrammar> find(const std::string& key);  // mutex_ must be locked
  // Removes the least recently used grammars while the total size is above the limit.
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
