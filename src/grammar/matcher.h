// Matches one text (the output tokens of one sequence) against a grammar, and computes the mask of the next
// token.
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
#include "grammar/compiled_grammar.h"
#include "grammar/unique_items.h"

namespace octavo::grammar {

// Copies of a matcher are independent. Several threads may use different matchers at the same time, even if
// these have the same grammar. A call that runs out of memory throws std::bad_alloc and does not change the
// matcher. The grammar's caches are then deleted, and computed again later.
class Matcher {
 public:
  explicit Matcher(std::shared_ptr<const CompiledGrammar> grammar);

  // Sets bit i % 32 of word i / 32 if accept(i) would return true. `mask` has at least
  // vocabulary().mask_words() words; additional words are cleared. Returns an error if no token can follow,
  // or if the mask needs more work than kWorkMax. The request must then end without another token.
  Result<void> fill_mask(std::span<std::int32_t> mask);

  // Appends the token. Returns false and changes nothing if the token is not allowed or the check takes too
  // long. An end-of-text token is accepted if the text may end; the matcher is then terminated.
  bool accept(TokenId token);

  // Variants for a thread that must not wait. They return nullopt if another matcher is using the grammar, if
  // the call needs more work than kStepWork, or after bad_alloc. Then call the function without try_ on
  // another thread, and try again.
  std::optional<Result<void>> try_fill_mask(std::span<std::int32_t> mask);
  std::optional<bool> try_accept(TokenId token);
  std::optional<std::vector<TokenId>> try_forced_tokens();

  // Removes the last `tokens` tokens, or all tokens if there are fewer.
  void rollback(std::size_t tokens);

  // Returns the bytes that must follow in every text, or "" if there is a choice or the text may end.
  std::string jump_forward();
  // Returns the tokens of the forced bytes, except tokens at the end that later bytes could change. These
  // tokens need no sampling (jump-forward decoding: Zheng et al., SGLang, 2024).
  std::vector<TokenId> forced_tokens();

  const Vocabulary& vocabulary() const { return grammar_->vocabulary(); }
  bool can_terminate();
  bool is_terminated() const { return terminated_; }
  std::size_t accepted() const { return tokens_.size(); }

 private:
  using Lock = std::unique_lock<std::mutex>;

  // Holds the lock of the grammar. If an exception destroys this object, the grammar's table may be
  // incomplete and is deleted.
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

  // Locks the grammar. If its epoch has changed, parses the text again.
  Result<Access> enter();
  // Does the same as enter(), but returns nullopt instead of waiting.
  std::optional<Access> try_enter();
  bool exhausted() const { return grammar_->table_->states().exhausted(); }
  // The functions from here on require that the grammar is locked.
  Result<void> fill(std::span<std::int32_t> mask);
  bool take(TokenId token);
  // Returns true if the grammar has arrays with unique items. Then items_take() to leave_out_repeated_items()
  // check tokens and masks.
  bool watches_items() const { return grammar_->tables_.unique_items; }
  bool items_take(UniqueItems& items, ConfigId before, TokenId token) const;
  bool items_fit(TokenId token, std::span<const std::string> rests) const;
  bool only_ends_string(std::string_view bytes) const;
  bool leave_out_repeated_items(std::span<std::int32_t> mask) const;
  std::string forced_text();
  std::vector<TokenId> settled(const std::string& forced) const;
  std::unexpected<Error> too_ambiguous() const;
  ConfigId current() const { return configs_.back(); }

  std::shared_ptr<const CompiledGrammar> grammar_;
  std::vector<TokenId> tokens_;
  std::vector<ConfigId> configs_;  // configs_[i]: configuration after i tokens
  // used if watches_items()
  UniqueItems items_;
  std::uint64_t epoch_ = 0;
  bool terminated_ = false;
  // parsing the text again exceeds a limit of work or memory
  bool too_large_ = false;
};

}  // namespace octavo::grammar
