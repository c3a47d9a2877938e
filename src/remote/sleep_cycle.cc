#include "remote/sleep_cycle.h"

#include <utility>

namespace octavo::remote {

Result<> SleepCycle::sleep(int level, Done&& done) {
  if (!awake()) return invalid("level", "the engine is already asleep, at level {}", wanted_level());
  state_ = FallingAsleep{level, std::move(done)};
  ++number_;
  return {};
}

Result<SleepCycle::Wake> SleepCycle::wake(Done&& done) {
  Ending* ending = std::get_if<Ending>(&state_);
  if (waking() || (ending != nullptr && ending->woken))
    return failure(ErrorCode::unavailable, "the engine is still waking up");
  if (ending != nullptr) {
    ending->woken = std::move(done);
    return Wake{.waits = true};
  }
  const int level = wanted_level();
  Wake wake{.waits = level == 1 || reached_level() == 2, .notify_engine = level == 1};
  if (auto* falling = std::get_if<FallingAsleep>(&state_)) wake.cancelled = std::move(falling->slept);
  if (wake.waits)
    state_ = Waking{level, std::move(done)};
  else
    state_ = Awake{};
  return wake;
}

int SleepCycle::due() const {
  const auto* falling = std::get_if<FallingAsleep>(&state_);
  return falling != nullptr ? falling->level : 0;
}

void SleepCycle::begin_end() { state_ = Ending{std::move(std::get<FallingAsleep>(state_).slept), {}}; }

SleepCycle::Done SleepCycle::slept(std::uint64_t number, const Result<>& result) {
  auto* falling = std::get_if<FallingAsleep>(&state_);
  if (falling == nullptr || number != number_) return {};
  const Done done = std::move(falling->slept);
  if (result) {
    state_ = Asleep{falling->level};
  } else {
    state_ = Awake{};
  }
  return done;
}

SleepCycle::Done SleepCycle::ended() {
  auto [slept, woken] = std::move(std::get<Ending>(state_));
  if (woken) {
    state_ = Waking{2, std::move(woken)};
  } else {
    state_ = Asleep{2};
  }
  return slept;
}

SleepCycle::Done SleepCycle::woken(const Result<>& result) {
  auto* waking = std::get_if<Waking>(&state_);
  if (waking == nullptr) return {};
  const Done done = std::move(waking->woken);
  if (result) {
    state_ = Awake{};
  } else {
    state_ = Asleep{waking->level};
  }
  return done;
}

std::vector<SleepCycle::Done> SleepCycle::give_up() {
  std::vector<Done> pending;
  const auto keep = [&](Done& done) {
    if (done) pending.push_back(std::move(done));
  };
  if (auto* falling = std::get_if<FallingAsleep>(&state_)) keep(falling->slept);
  if (auto* ending = std::get_if<Ending>(&state_)) {
    keep(ending->slept);
    keep(ending->woken);
  }
  if (auto* waking = std::get_if<Waking>(&state_)) keep(waking->woken);
  state_ = Awake{};
  return pending;
}

int SleepCycle::wanted_level() const {
  const int falling = due();
  return falling != 0 ? falling : ending() ? 2 : reached_level();
}

int SleepCycle::reached_level() const {
  if (const auto* asleep = std::get_if<Asleep>(&state_)) return asleep->level;
  if (const auto* waking = std::get_if<Waking>(&state_)) return waking->level;
  return 0;
}

}  // namespace octavo::remote
