// A grammar compiled for one vocabulary. All requests with this grammar share it. Users see no change in
// it.
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
  // parser_bytes_max: limit on the parser's configurations and masks, which the grammar keeps for all its
  // matchers. Above it they are deleted, and each matcher reads its tokens again.
  static Result<std::shared_ptr<const CompiledGrammar>> compile(Grammar grammar,
                                                                std::shared_ptr<const Vocabulary> vocabulary,
                                                                std::size_t parser_bytes_max = 32u << 20);

  // Converts the grammar to bytes and back. Errors: the bytes come from another vocabulary or release.
  std::string to_bytes() const;
  static Result<std::shared_ptr<const CompiledGrammar>> from_bytes(
      std::string_view bytes, std::shared_ptr<const Vocabulary> vocabulary,
      std::size_t parser_bytes_max = 32u << 20);

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  std::size_t state_count() const { return tables_.states.size(); }
  // Returns the size of the tables, and of the configurations and masks made so far (at most
  // parser_bytes_max). Never waits.
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

  // Returns the maximum memory of the parser. If an object's members may have any order, states are made
  // when a text reaches them, so the limit depends on the longest text since memory was last cleared.
  // Called with mutex_ locked.
  std::size_t parser_bytes_allowed(std::size_t text_tokens) const;

  // The members below are filled on demand, with mutex_ locked. Configuration ids are valid within one
  // epoch.
  mutable std::mutex mutex_;
  mutable std::unique_ptr<MaskTable> table_;
  mutable std::uint64_t epoch_ = 0;
  mutable std::size_t longest_text_ = 0;                // tokens of the longest text in this epoch
  mutable std::atomic<std::size_t> learned_bytes_ = 0;  // size of table_ after its last use by a matcher
};

}  // namespace octavo::grammar
