// The state of one text under a grammar: the tokens accepted so far, and the tokens that can follow.
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

// A copy continues independently. Different threads may use different matchers, even of one grammar. If
// memory is exhausted, a call throws std::bad_alloc and has no effect, except that the grammar's computed
// masks are deleted; the next call computes them again.
class Matcher {
 public:
  explicit Matcher(std::shared_ptr<const CompiledGrammar> grammar);

  // Sets bit i % 32 of word i / 32 for exactly those tokens i that accept() would accept. `mask` has at
  // least vocabulary().mask_words() words; further words are cleared. Errors: no token can follow, or the
  // grammar is so ambiguous that the check exceeds kWorkMax. After an error the request must end, without
  // another sampled token.
  Result<void> fill_mask(std::span<std::int32_t> mask);

  // Accepts a token. Returns false, without a change, if the token is not allowed or the check takes too
  // long. An end-of-text token is accepted if the text may end, and terminates the matcher.
  bool accept(TokenId token);

  // Variants for a thread that must not wait. They return nullopt if another matcher uses the grammar, if
  // more than kStepWork work is needed, or if memory is exhausted. Then a call that can wait is needed; a
  // later try can use its results.
  std::optional<Result<void>> try_fill_mask(std::span<std::int32_t> mask);
  std::optional<bool> try_accept(TokenId token);
  std::optional<std::vector<TokenId>> try_forced_tokens();

  // Removes the last `tokens` accepted tokens, or all if fewer were accepted.
  void rollback(std::size_t tokens);

  // Returns the bytes that must follow, or "" if there is a choice or the text may end.
  std::string jump_forward();
  // Returns the tokens of the bytes that must follow, as the tokenizer writes them, without tokens that
  // later bytes could change. They need no forward passes (jump-forward decoding: Zheng et al., SGLang,
  // 2024).
  std::vector<TokenId> forced_tokens();

  const Vocabulary& vocabulary() const { return grammar_->vocabulary(); }
  bool can_terminate();
  bool is_terminated() const { return terminated_; }
  std::size_t accepted() const { return tokens_.size(); }

 private:
  using Lock = std::unique_lock<std::mutex>;

  // The locked table of the grammar. If an exception passes, the table is incomplete and is deleted.
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

  // Locks the grammar, and renews this matcher's configurations if the epoch has changed.
  Result<Access> enter();
  // Acts like enter(), without waiting.
  std::optional<Access> try_enter();
  bool exhausted() const { return grammar_->table_->states().exhausted(); }
  // The functions below need the lock.
  Result<void> fill(std::span<std::int32_t> mask);
  bool take(TokenId token);
  // Returns whether items of some arrays must differ. Then these functions check tokens and masks.
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
  std::vector<ConfigId> configs_;  // configuration before the first token and after each token
  UniqueItems items_;              // for grammars with arrays of unique items
  std::uint64_t epoch_ = 0;
  bool terminated_ = false;
  bool too_large_ = false;  // reading the text again exceeds the limit of work or memory
};

}  // namespace octavo::grammar
