#include "serve/admission.h"

#include <algorithm>
#include <cmath>

namespace octavo {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

bool fits(const Price& used, const Price& more, const Price& limit) {
  return used.answers + more.answers <= limit.answers && used.bytes + more.bytes <= limit.bytes;
}

}  // namespace

Result<> Admission::possible(const Price& price) const {
  if (price.answers > client_max_.answers)
    return invalid("n",
                   "n times the number of prompts is {}, but a client may have at most {} unfinished "
                   "answers: lower n or send fewer prompts",
                   price.answers, client_max_.answers);
  if (price.bytes > client_max_.bytes)
    return invalid(
        "prompt_logprobs",
        "prompts and log-probabilities of this request need {} MiB, but a client may use at most {} MiB",
        price.bytes / kMiB, client_max_.bytes / kMiB);
  return {};
}

Result<Admission::Ticket> Admission::admit(const std::string& client, const Price& price) {
  TRY_VOID(possible(price));
  if (!take(client, price))
    return failure(
        ErrorCode::resource_exhausted,
        "too many answers are unfinished: this request needs {} and {} MiB of memory, a client may "
        "have {} (--max-num-seqs and --max-num-queued-reqs) and {} MiB, and all clients together {} "
        "and {} MiB: retry later",
        price.answers, price.bytes / kMiB, client_max_.answers, client_max_.bytes / kMiB, budget_.answers,
        budget_.bytes / kMiB);
  return Ticket(*this, client, price);
}

bool Admission::take(const std::string& client, const Price& price) {
  const std::lock_guard lock(mutex_);
  if (!fits(used_, price, budget_)) return false;
  const auto found = clients_.find(client);
  if (!fits(found == clients_.end() ? Price{} : found->second, price, client_max_)) return false;
  if (shared_bytes_ && !shared_bytes_->take(static_cast<std::uint64_t>(price.bytes))) return false;
  if (used_.answers == 0) busy_since_us_ = clock_us_();
  used_ += price;
  clients_[client] += price;
  return true;
}

void Admission::give_back(const std::string& client, const Price& price) {
  const std::lock_guard lock(mutex_);
  used_ -= price;
  if (shared_bytes_) shared_bytes_->give_back(static_cast<std::uint64_t>(price.bytes));
  count_ends(price.answers);
  const auto found = clients_.find(client);
  found->second -= price;
  if (found->second.answers == 0 && found->second.bytes == 0) clients_.erase(found);
}

void Admission::count_ends(int answers) {
  if (answers == 0) return;
  const std::int64_t now = clock_us_();
  constexpr double kNews = 0.1;  // weight of a new value in seconds_an_answer_
  const std::int64_t before = std::max(last_end_us_, busy_since_us_);
  const double seconds = static_cast<double>(now - before) * 1e-6 / answers;
  seconds_an_answer_ += (seconds_an_answer_ > 0 ? kNews : 1) * (seconds - seconds_an_answer_);
  last_end_us_ = now;
}

int Admission::retry_after_s(const Price& price) const {
  constexpr double kMost = 60;
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::clamp(std::ceil(seconds_an_answer_ * price.answers), 1.0, kMost));
}

Price Admission::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

Admission::Ticket::~Ticket() {
  if (!admission_) return;
  admission_->give_back(client_, held_);
  --admission_->tickets_;
}

bool Admission::Ticket::grow(std::int64_t bytes) {
  const Price more{.answers = 0, .bytes = bytes};
  if (!admission_ || !admission_->take(client_, more)) return false;
  held_ += more;
  return true;
}

void Admission::Ticket::give_back_answer() {
  if (!admission_ || held_.answers == 0) return;
  const Price one{.answers = 1, .bytes = 0};
  admission_->give_back(client_, one);
  held_ -= one;
}

}  // namespace octavo
