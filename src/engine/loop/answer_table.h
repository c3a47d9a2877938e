// The answers in the making, and how each of them ends.
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

using AnswerIndex = std::uint64_t;  // SequenceSpec::tag

// Every answer that is opened ends in exactly one of deliver (returning true), deliver_pooled, stop,
// fail and abort; then its
// place is free again, and when it was the request's last one, so are the request's places in the inbox.
class AnswerTable {
 public:
  // What a request says of itself with its last answer's end.
  using Offer = std::function<std::optional<KvTransferParams>(const Accepted&)>;

  // engine: EngineInfo::index. offer: asked when a request ends that was not aborted and did not fail.
  AnswerTable(Inbox& inbox, int engine, Offer offer)
      : inbox_(inbox), engine_(engine), offer_(std::move(offer)) {}

  AnswerIndex open(std::unique_ptr<Answer> answer);
  Answer& operator[](AnswerIndex index) { return *answers_[index]; }

  // The answer's newest token, the last of `output`. True: the answer has ended with it, and its owner knows.
  bool deliver(AnswerIndex index, SampledToken&& token, std::span<const TokenId> output, std::int64_t now_us);
  // Of the prompt's next position. False: memory runs out, the answer has ended, and its owner knows.
  bool add_prompt_logprobs(AnswerIndex index, TokenLogprobs&& logprobs, std::int64_t now_us);

  // What the model has made of the answer's prompt: all there is to say.
  void deliver_pooled(AnswerIndex index, std::span<const float> pooled, std::int64_t now_us);

  // Hands what answers have said in this step to their owners: each gets all of it at once, or nothing.
  void hand_over();

  // Ends it with FinishReason::stop, without another token.
  void stop(AnswerIndex index, std::int64_t now_us) { end(index, FinishReason::stop, now_us); }
  // Ends it with FinishReason::error or abort.
  void fail(AnswerIndex index, const Error& error, std::int64_t now_us);
  void abort(AnswerIndex index, std::int64_t now_us) { end(index, FinishReason::abort, now_us); }

  // Calls visit(index, answer) for each open answer of the request; visit may end it.
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
    std::int64_t prompt_tokens = 0;         // of answers that have begun
    std::int64_t prompt_tokens_cached = 0;  // of those
    std::int64_t generation_tokens = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  // For those who keep what a token says, which takes memory. False: there is none, and the answer has ended.
  template <class Keep>
  bool keep(AnswerIndex index, std::int64_t now_us, Keep&& keep);
  void begin(Answer& answer, std::int64_t now_us);
  void send(Answer& answer) const;
  void end(AnswerIndex index, FinishReason reason, std::int64_t now_us);

  Inbox& inbox_;
  int engine_;
  Offer offer_;
  std::vector<std::unique_ptr<Answer>> answers_;  // by index; null: unused
  std::vector<AnswerIndex> unused_;
  std::vector<AnswerIndex> fresh_;  // those with news to hand over
  Counters counters_;
};

}  // namespace octavo
