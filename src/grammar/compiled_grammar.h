// A grammar compiled for one vocabulary. Requests with the same grammar share it. Matchers fill its caches on
// demand; the language never changes.
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
  // parser_bytes_max: memory limit for the parser states and masks that all matchers share. Above this limit,
  // they are all deleted, and each matcher parses its text again.
  static Result<std::shared_ptr<const CompiledGrammar>> compile(Grammar grammar,
                                                                std::shared_ptr<const Vocabulary> vocabulary,
                                                                std::size_t parser_bytes_max = 32u << 20);

  // Serializes the grammar. from_bytes() returns an error if the bytes are from another vocabulary or
  // release.
  std::string to_bytes() const;
  static Result<std::shared_ptr<const CompiledGrammar>> from_bytes(
      std::string_view bytes, std::shared_ptr<const Vocabulary> vocabulary,
      std::size_t parser_bytes_max = 32u << 20);

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  std::size_t state_count() const { return tables_.states.size(); }
  // Returns the size in bytes of tables, parser states and masks when a matcher last used the grammar. Does
  // not wait for a lock.
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

  // Returns the memory limit in bytes for the parser. Rules with parts in any order (AnyOrder) need new
  // states for each text, so with such rules the limit grows with the longest text. mutex_ must be locked.
  std::size_t parser_bytes_allowed(std::size_t text_tokens) const;

  // Matchers change the members below while mutex_ is locked. epoch_ changes when table_ is deleted;
  // configuration ids are valid within one epoch.
  mutable std::mutex mutex_;
  mutable std::unique_ptr<MaskTable> table_;
  mutable std::uint64_t epoch_ = 0;
  // number of tokens of the longest text that was parsed in this epoch
  mutable std::size_t longest_text_ = 0;
  // size of table_ when a matcher last used it
  mutable std::atomic<std::size_t> learned_bytes_ = 0;
};

}  // namespace octavo::grammar
