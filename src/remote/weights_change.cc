#include "remote/weights_change.h"

#include <utility>

namespace octavo::remote {

Result<> WeightsChange::choose(std::string path, Done&& done) {
  if (!std::holds_alternative<Settled>(state_))
    return failure(ErrorCode::unavailable, "a reload of the weights is already running");
  state_ = Chosen{std::move(path)};
  done_ = std::move(done);
  return {};
}

bool WeightsChange::begin() {
  auto* chosen = std::get_if<Chosen>(&state_);
  if (chosen == nullptr) return false;
  std::string previous = path_;
  if (!chosen->path.empty()) path_ = std::move(chosen->path);
  state_ = Changing{std::move(previous)};
  return true;
}

bool WeightsChange::revert(const Error& death) {
  auto* changing = std::get_if<Changing>(&state_);
  if (changing == nullptr) return false;
  path_ = std::move(changing->previous);
  state_ = Reverting{death};
  return true;
}

WeightsChange::Ended WeightsChange::ready() {
  if (std::holds_alternative<Changing>(state_)) return {give_up(), {}};
  if (const auto* reverting = std::get_if<Reverting>(&state_)) {
    Error error = reverting->error;
    return {give_up(), std::unexpected(std::move(error))};
  }
  return {};
}

WeightsChange::Done WeightsChange::give_up() {
  state_ = Settled{};
  return std::exchange(done_, nullptr);
}

}  // namespace octavo::remote
