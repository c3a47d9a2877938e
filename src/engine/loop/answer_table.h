// The table of unfinished answers, and the functions that end an answer and notify the client.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/loop/answer.h"
#include "engine/loop/inbox.h"
#include "sample/sampler.h"

namespace octavo {

// index of an answer in the table; SequenceSpec::tag has the same value
using AnswerIndex = std::uint64_t;

// Exactly one of these calls ends an answer: deliver() (if it returns true), deliver_pooled(), stop(),
// fail() or abort(). The call frees the index of the answer. The end of the last answer also frees the
// request's slots in the inbox.
class AnswerTable {
 public:
  using Offer = std::function<std::optional<KvTransferParams>(const Answer&, bool whole)>;

  // `engine` is EngineInfo::index. `offer` is called at the end of each answer; its argument `whole` is false
  // after an abort or a failure.
  AnswerTable(Inbox& inbox, int engine, Offer offer)
      : inbox_(inbox), engine_(engine), offer_(std::move(offer)) {}

  AnswerIndex open(std::unique_ptr<Answer> answer);
  Answer& operator[](AnswerIndex index) { return *answers_[index]; }
  AnswerAccount& account(AnswerIndex index) { return accounts_[index]; }

  // Adds the newest token, which is the last element of `output`. Returns true if the answer has ended; its
  // client is then notified.
  bool deliver(AnswerIndex index, SampledToken&& token, std::span<const TokenId> output, std::int64_t now_us);
  // Adds the logprobs of the next prompt position. Returns false if there is not enough memory. The answer
  // has then ended, and its client is notified.
  bool add_prompt_logprobs(AnswerIndex index, TokenLogprobs&& logprobs, std::int64_t now_us);

  void deliver_pooled(AnswerIndex index, std::span<const float> pooled, std::int64_t now_us);

  // Reports to the client that the first `computed` tokens of the prompt are computed. The answer must not
  // have output yet.
  void report_progress(AnswerIndex index, int computed) const;

  // Sends the outputs of this step to their sinks, one Output for each answer.
  void hand_over();

  // Ends the answer with FinishReason::stop and without a further token.
  void stop(AnswerIndex index, std::int64_t now_us) { end(index, FinishReason::stop, now_us); }
  void fail(AnswerIndex index, const Error& error, std::int64_t now_us);
  void abort(AnswerIndex index, std::int64_t now_us) { end(index, FinishReason::abort, now_us); }

  // Calls visit(index, answer) for each unfinished answer of the request. `visit` may end the answer.
  template <class Visit>
  void for_request(RequestId id, Visit&& visit) {
    for (AnswerIndex i = 0; i < answers_.size(); ++i)
      if (answers_[i] && answers_[i]->accepted->id == id) visit(i, *answers_[i]);
  }
  template <class Visit>
  void for_all(Visit&& visit) {
    for (AnswerIndex i = 0; i < answers_.size(); ++i)
      if (answers_[i]) visit(i, *answers_[i]);
  }

  int open_count() const { return static_cast<int>(answers_.size() - unused_.size()); }

  struct Counters {
    std::int64_t prompt_tokens = 0;         // prompt tokens of all answers that have started
    std::int64_t prompt_tokens_cached = 0;  // prompt tokens that were in the prefix cache
    // Prompt tokens that were loaded, for each KvSource.
    std::array<std::int64_t, kKvSources> prompt_tokens_loaded{};
    std::int64_t generation_tokens = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  // Runs `keep`, which may allocate memory. If there is not enough memory, ends the answer and returns
  // false.
  template <class Keep>
  bool keep(AnswerIndex index, std::int64_t now_us, Keep&& keep);
  void begin(AnswerIndex index, std::int64_t now_us);
  void send(Answer& answer, const AnswerCost& cost) const;
  void end(AnswerIndex index, FinishReason reason, std::int64_t now_us);

  Inbox& inbox_;
  int engine_;
  Offer offer_;
  std::vector<std::unique_ptr<Answer>> answers_;
  // [AnswerIndex]; separate from the answers, because each step reads the accounts of all its answers
  std::vector<AnswerAccount> accounts_;
  std::vector<AnswerIndex> unused_;
  std::vector<AnswerIndex> fresh_;  // answers whose outputs have not been sent
  Counters counters_;
};

}  // namespace octavo
