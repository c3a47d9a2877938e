#include "transfer/tiers/prompt_look_ups.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.h"

namespace octavo {
namespace {

// time limit of a lookup in microseconds
constexpr std::int64_t kLookUpUs = 1'000'000;

}  // namespace

PromptLookUps::PromptLookUps(std::function<void(std::span<const Hash128>)> look_up,
                             std::function<void()> wake)
    : look_up_(std::move(look_up)),
      wake_(std::move(wake)),
      thread_([this](const std::stop_token& stop) { loop(stop); }) {}

bool PromptLookUps::done(const KvPrompt& prompt) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = look_ups_.try_emplace(prompt.id);
  LookUp& mine = found->second;
  if (is_new) {
    mine.keys.assign(prompt.keys.begin(), prompt.keys.end());
    mine.give_up_us = now_us() + kLookUpUs;
    arrived_.notify_one();
  }
  mine.done = mine.done || now_us() >= mine.give_up_us;
  return mine.done;
}

void PromptLookUps::forget(RequestId id) {
  const std::lock_guard lock(mutex_);
  look_ups_.erase(id);
}

std::int64_t PromptLookUps::wake_at_us() const {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  const std::lock_guard lock(mutex_);
  for (const auto& [id, each] : look_ups_)
    if (!each.done) first = std::min(first, each.give_up_us);
  return first;
}

// Looks up the prompts one by one, the oldest first. Skips prompts whose lookup is complete or has exceeded
// its time limit.
void PromptLookUps::loop(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto next = look_ups_.end();
    arrived_.wait(lock, stop, [&] {
      next = std::ranges::find_if(look_ups_, [](const auto& each) { return !each.second.done; });
      return next != look_ups_.end();
    });
    if (stop.stop_requested()) return;
    const RequestId id = next->first;
    const std::vector<Hash128> keys = next->second.keys;
    lock.unlock();
    look_up_(keys);
    lock.lock();
    if (const auto mine = look_ups_.find(id); mine != look_ups_.end()) mine->second.done = true;
    wake_();
  }
}

}  // namespace octavo
