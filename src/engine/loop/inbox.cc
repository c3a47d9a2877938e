#include "engine/loop/inbox.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/clock.h"

namespace octavo {

Result<RequestId> Inbox::submit(Request request, std::shared_ptr<OutputSink> sink) {
  const std::int64_t now = now_us();
  const std::lock_guard lock(mutex_);
  if (closed_) return failure(ErrorCode::unavailable, "the engine is shutting down");
  if (asleep_) return failure(ErrorCode::unavailable, "the engine is asleep");
  const int answers = request.answers();
  if (answers > capacity_)
    return invalid("n", "this engine can have at most {} unfinished answers, but the request needs {}",
                   capacity_, answers);
  if (taken_ + answers > capacity_)
    return failure(ErrorCode::resource_exhausted,
                   "{} answers are unfinished, and the limit is {} (--max-num-seqs and "
                   "--max-num-queued-reqs): retry later",
                   taken_, capacity_);
  taken_ += answers;
  const RequestId id = ++last_id_;
  unfinished_[id].answers = answers;
  mail_.submissions.push_back({id, std::move(request), std::move(sink), now});
  mail_arrived_.notify_one();
  return id;
}

void Inbox::abort(RequestId id) {
  const std::lock_guard lock(mutex_);
  const auto found = unfinished_.find(id);
  if (found == unfinished_.end() || std::exchange(found->second.aborting, true)) return;
  mail_.aborts.push_back(id);
  mail_arrived_.notify_one();
}

void Inbox::request_reset() {
  const std::lock_guard lock(mutex_);
  mail_.reset_prefix_cache = true;
  mail_arrived_.notify_one();
}

void Inbox::look_at_prefixes() {
  const std::lock_guard lock(mutex_);
  mail_.look_at_prefixes = mail_.woken = true;
  mail_arrived_.notify_one();
}

void Inbox::log_state() {
  const std::lock_guard lock(mutex_);
  mail_.log_state = mail_.woken = true;
  mail_arrived_.notify_one();
}

void Inbox::command(AdapterCommand command) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      mail_.adapters.push_back(std::move(command));
      mail_arrived_.notify_one();
      return;
    }
  }
  command.done(failure(ErrorCode::unavailable, "the engine was stopped"));
}

void Inbox::command(SessionRequest request) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      mail_.sessions.push_back(std::move(request));
      mail_arrived_.notify_one();
      return;
    }
  }
  request.done(failure(ErrorCode::unavailable, "the engine was stopped"));
}

void Inbox::wake() {
  const std::lock_guard lock(mutex_);
  mail_.woken = true;
  mail_arrived_.notify_one();
}

void Inbox::sleep(EngineClient::Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      asleep_ = true;
      mail_.sleeps.push_back(std::move(done));
      mail_arrived_.notify_one();
      return;
    }
  }
  done(failure(ErrorCode::unavailable, "the engine was stopped"));
}

void Inbox::wake_up(EngineClient::Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      mail_.wakes.push_back(std::move(done));
      mail_arrived_.notify_one();
      return;
    }
  }
  done(failure(ErrorCode::unavailable, "the engine was stopped"));
}

void Inbox::woken() {
  const std::lock_guard lock(mutex_);
  asleep_ = !mail_.sleeps.empty();
}

void Inbox::pause(Pause wanted) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      if (!std::exchange(paused_, true)) last_before_pause_ = last_id_;
      frozen_ = frozen_ || wanted.mode == PauseMode::keep;
      mail_.pauses.push_back(std::move(wanted));
      mail_arrived_.notify_one();
      return;
    }
  }
  wanted.done(failure(ErrorCode::unavailable, "the engine was stopped"));
}

void Inbox::resume() {
  const std::lock_guard lock(mutex_);
  paused_ = frozen_ = false;
  mail_.woken = true;
  mail_arrived_.notify_one();
}

bool Inbox::paused() const {
  const std::lock_guard lock(mutex_);
  return paused_;
}

// While the inbox is paused, moves submissions from `mail` back to the inbox. Aborted submissions stay in
// `mail`, because their clients must get a final output.
void Inbox::hold_back(Mail& mail) {
  const auto goes_on = [&](const Submission& s) {
    return s.id <= last_before_pause_ || unfinished_.at(s.id).aborting;
  };
  const auto held = std::ranges::stable_partition(mail.submissions, goes_on);
  mail_.submissions.assign(std::make_move_iterator(held.begin()), std::make_move_iterator(held.end()));
  mail.submissions.erase(held.begin(), held.end());
}

void Inbox::grammar_ready(GrammarReady ready) {
  const std::lock_guard lock(mutex_);
  mail_.grammars.push_back(std::move(ready));
  mail_arrived_.notify_one();
}

void Inbox::mask_ready(SequenceId sequence) {
  const std::lock_guard lock(mutex_);
  mail_.masks.push_back(sequence);
  mail_arrived_.notify_one();
}

bool Inbox::take(Mail& mail, std::int64_t until_us) {
  mail.submissions.clear();
  mail.grammars.clear();
  mail.masks.clear();
  mail.aborts.clear();
  mail.adapters.clear();
  mail.sessions.clear();
  mail.sleeps.clear();
  mail.wakes.clear();
  mail.pauses.clear();
  mail.woken = false;
  mail.reset_prefix_cache = false;
  mail.look_at_prefixes = false;
  mail.log_state = false;
  std::unique_lock lock(mutex_);
  const auto something = [&] {
    return stopped_ || mail_.reset_prefix_cache || (!paused_ && !mail_.submissions.empty()) ||
           !mail_.grammars.empty() || !mail_.masks.empty() || !mail_.aborts.empty() ||
           !mail_.adapters.empty() || !mail_.sessions.empty() || !mail_.sleeps.empty() ||
           !mail_.wakes.empty() || !mail_.pauses.empty() || mail_.woken;
  };
  if (until_us == kForever)
    mail_arrived_.wait(lock, something);
  else if (until_us > 0)
    mail_arrived_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::microseconds(until_us)),
                             something);
  std::swap(mail, mail_);
  if (paused_ && !stopped_) hold_back(mail);
  mail.frozen = frozen_;
  return !stopped_;
}

void Inbox::finished(RequestId id) {
  const std::lock_guard lock(mutex_);
  const auto found = unfinished_.find(id);
  taken_ -= found->second.answers;
  unfinished_.erase(found);
  if (unfinished_.empty()) emptied_.notify_all();
}

void Inbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void Inbox::wait_empty() {
  std::unique_lock lock(mutex_);
  emptied_.wait(lock, [&] { return unfinished_.empty(); });
}

void Inbox::stop() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  stopped_ = true;
  mail_arrived_.notify_one();
}

}  // namespace octavo
