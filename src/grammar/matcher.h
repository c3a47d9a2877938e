// One text under a grammar: the tokens accepted so far, and the tokens that can come next.
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

// A copy continues independently. Different threads may use different matchers, also of one grammar. If
// memory runs out, a call throws std::bad_alloc and has no effect, except that the grammar's computed masks
// are deleted; the next call computes them again.
class Matcher {
 public:
  explicit Matcher(std::shared_ptr<const CompiledGrammar> grammar);

  // Sets bit i % 32 of word i / 32 exactly for the tokens i that accept() would accept. `mask` has at least
  // vocabulary().mask_words() words; additional words are cleared. Error: no token can follow, or the grammar
  // is so ambiguous that the check exceeds kWorkMax. After an error the request must end; nothing may be
  // sampled.
  Result<void> fill_mask(std::span<std::int32_t> mask);

  // Accepts the token. False: it is not allowed, or the check takes too long; then the matcher does not
  // change. An end-of-text token is accepted if the text may end, and terminates the matcher.
  bool accept(TokenId token);

  // fill_mask() for a thread that must not wait. nullopt: another matcher uses the grammar, more than
  // kStepWork work is needed, or memory runs out. Then a call that can wait is needed; a later try can use
  // its results.
  std::optional<Result<void>> try_fill_mask(std::span<std::int32_t> mask);
  std::optional<bool> try_accept(TokenId token);
  std::optional<std::vector<TokenId>> try_forced_tokens();

  // Removes the last `tokens` accepted tokens, or all if fewer were accepted.
  void rollback(std::size_t tokens);

  // The bytes that must come next; "" if there is a choice or the text may end.
  std::string jump_forward();
  // The tokens of the bytes that must come next, as the tokenizer writes them. Tokens that later bytes could
  // change are left out. They can be appended without forward passes (jump-forward decoding: Zheng et al.,
  // SGLang, 2024).
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
  // As above, but without waiting.
  std::optional<Access> try_enter();
  bool exhausted() const { return grammar_->table_->states().exhausted(); }
  // These functions need the lock.
  Result<void> fill(std::span<std::int32_t> mask);
  bool take(TokenId token);
  // Whether items of some arrays must differ; then these functions check tokens and masks.
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
  std::vector<ConfigId> configs_;  // configurations before the first token and after each token
  UniqueItems items_;              // for grammars with arrays of unique items
  std::uint64_t epoch_ = 0;
  bool terminated_ = false;
  bool too_large_ = false;  // reading the text again exceeds the limit of work or memory
};

}  // namespace octavo::grammar
