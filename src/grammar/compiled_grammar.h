// A grammar made ready for one vocabulary; immutable to its users and shared by all requests that ask for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/mask_table.h"
#include "grammar/tables.h"
#include "grammar/vocabulary.h"

namespace octavo::grammar {

class CompiledGrammar {
 public:
  // parser_bytes_max bounds what the grammar's matchers together remember of the parser's configurations and
  // masks. Beyond it the memory is cleared, and each matcher finds its way back by reading its tokens again.
  static Result<std::shared_ptr<const CompiledGrammar>> compile(Grammar grammar,
                                                                std::shared_ptr<const Vocabulary> vocabulary,
                                                                std::size_t parser_bytes_max = 32u << 20);

  // The grammar as bytes, and back, for an equal vocabulary and the same release. Bytes of others are errors.
  std::string to_bytes() const;
  static Result<std::shared_ptr<const CompiledGrammar>> from_bytes(
      std::string_view bytes, std::shared_ptr<const Vocabulary> vocabulary,
      std::size_t parser_bytes_max = 32u << 20);

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  std::size_t state_count() const { return tables_.states.size(); }
  // Size of the tables and of what its matchers have learned so far; the latter stays below parser_bytes_max.
  // Never waits.
  std::size_t byte_size() const;

 private:
  friend class Matcher;

  CompiledGrammar(Tables tables, std::shared_ptr<const Vocabulary> vocabulary, std::size_t parser_bytes_max);

  const Tables tables_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const std::size_t parser_bytes_max_;
  const std::size_t tables_bytes_;

  static Result<std::shared_ptr<const CompiledGrammar>> begin(Tables tables,
                                                              std::shared_ptr<const Vocabulary> vocabulary,
                                                              std::size_t parser_bytes_max);

  // Memory of the parser before it is cleared. Objects whose members come in any order make states as texts
  // need them, so the longest text since the last clearing counts. Under the mutex.
  std::size_t parser_bytes_allowed(std::size_t text_tokens) const;

  // Lazily filled, under the mutex. Configuration ids hold within one epoch.
  mutable std::mutex mutex_;
  mutable std::unique_ptr<MaskTable> table_;
  mutable std::uint64_t epoch_ = 0;
  mutable std::size_t longest_text_ = 0;                // in tokens, of the matchers in this epoch
  mutable std::atomic<std::size_t> learned_bytes_ = 0;  // of table_, when a matcher last looked
};

}  // namespace octavo::grammar
