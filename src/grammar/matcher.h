// One text under a grammar: which tokens may come next, and what has come so far.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "grammar/compiled_grammar.h"
#include "grammar/unique_items.h"

namespace octavo::grammar {

// Draft tokens for speculation, as a tree: node i follows node parents[i] < i, or the text so far if that is
// -1.
struct DraftTree {
  std::span<const TokenId> tokens;
  std::span<const int> parents;
};

// Copying forks. Different matchers may be used from different threads, also of one grammar. Where memory
// runs out, calls throw std::bad_alloc and have done nothing: what the grammar has learned is forgotten, and
// found again by the next call.
class Matcher {
 public:
  explicit Matcher(std::shared_ptr<const CompiledGrammar> grammar);

  // Sets bit i % 32 of word i / 32 exactly for the tokens i that accept() would take. `mask` has at least
  // vocabulary().mask_words() words; words beyond are cleared. An error when no token may follow, or when
  // the grammar is so ambiguous that finding out takes too long (kWorkMax), which ends the request: nothing
  // may be sampled.
  Result<void> fill_mask(std::span<std::int32_t> mask);

  // Masks for verifying a draft: row 0 is what may follow the text so far, row i + 1 what may follow the path
  // to node i, each equal to the mask after accepting that path. Rows of vocabulary().mask_words(), one more
  // than there are nodes. A row is all zero where its path is not allowed, or ends the text. Nothing is
  // accepted.
  Result<void> fill_tree(const DraftTree& tree, std::span<std::int32_t> masks);

  // Takes the token, or returns false and stays as it was: also where finding out takes too long. An
  // end-of-text token is taken where the text may end and terminates the matcher.
  bool accept(TokenId token);

  // fill_mask for a thread that must not wait. nullopt if another matcher of the grammar is at work, more
  // than kStepWork is needed, or memory runs out; then a call that waits must do it. The next try can use
  // what those calls have found.
  std::optional<Result<void>> try_fill_mask(std::span<std::int32_t> mask);
  std::optional<bool> try_accept(TokenId token);
  std::optional<std::vector<TokenId>> try_forced_tokens();

  // Takes back the last `tokens` accepted tokens, or all if fewer were accepted.
  void rollback(std::size_t tokens);

  // The bytes that must come next; "" if there is a choice or the text may end.
  std::string jump_forward();
  // The token that must come next, or -1: appending it without a forward pass changes nothing.
  TokenId forced_token();
  // The tokens that the tokenizer writes for the bytes that must come next, except those that later bytes
  // could change. Append them without a forward pass each (jump-forward decoding: Zheng et al., SGLang,
  // 2024).
  std::vector<TokenId> forced_tokens();

  const Vocabulary& vocabulary() const { return grammar_->vocabulary(); }
  bool can_terminate();
  bool is_terminated() const { return terminated_; }
  std::size_t accepted() const { return tokens_.size(); }

 private:
  using Lock = std::unique_lock<std::mutex>;

  // The grammar's table, locked. An exception that passes by leaves it half made: it is dropped.
  class Access {
   public:
    Access(const CompiledGrammar& grammar, Lock lock)
        : grammar_(&grammar), lock_(std::move(lock)), exceptions_(std::uncaught_exceptions()) {}
    Access(Access&&) = default;
    Access& operator=(Access&&) = delete;
    ~Access() {
      if (lock_.owns_lock() && std::uncaught_exceptions() > exceptions_) grammar_->table_.reset();
    }

   private:
    const CompiledGrammar* grammar_;
    Lock lock_;
    int exceptions_;
  };

  // Locks the grammar and brings this matcher's configurations up to its epoch.
  Result<Access> enter();
  // The same where it can be had at once.
  std::optional<Access> try_enter();
  bool exhausted() const { return grammar_->table_->states().exhausted(); }
  // Under the lock.
  Result<void> fill(std::span<std::int32_t> mask);
  bool take(TokenId token);
  // Whether items of arrays must differ, and what that means for a token and for a mask.
  bool watches_items() const { return grammar_->tables_.unique_items; }
  bool items_take(UniqueItems& items, ConfigId before, TokenId token) const;
  bool items_fit(TokenId token, std::span<const std::string> rests) const;
  bool only_ends_string(std::string_view bytes) const;
  bool leave_out_repeated_items(std::span<std::int32_t> mask) const;
  Result<void> fill_tree_by_forks(const DraftTree& tree, std::span<std::int32_t> masks);
  std::string forced_text();
  std::vector<TokenId> settled(const std::string& forced) const;
  std::unexpected<Error> too_ambiguous() const;
  ConfigId current() const { return configs_.back(); }

  std::shared_ptr<const CompiledGrammar> grammar_;
  std::vector<TokenId> tokens_;
  std::vector<ConfigId> configs_;       // before the first token and after each
  std::vector<ConfigId> tree_configs_;  // scratch of fill_tree
  UniqueItems items_;                   // for grammars with such arrays
  std::uint64_t epoch_ = 0;
  bool terminated_ = false;
  bool too_large_ = false;  // reading the text so far again needs more work or memory than there is
};

// Fills row i of `masks` (vocabulary().mask_words() words each) from matchers[i], on all threads of the pool.
// The matchers differ and have one vocabulary. Row i is all zero exactly where fill_mask would return an
// error.
void fill_masks(std::span<Matcher* const> matchers, std::span<std::int32_t> masks, ThreadPool& pool);

}  // namespace octavo::grammar
