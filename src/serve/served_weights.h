// The version of the weights that the engine uses, and the updates of weights that a client sends. Any thread
// may call the functions.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "weights/weight_update.h"

namespace octavo {

class ServedWeights {
 public:
  // `folder` is the model's folder or file.
  explicit ServedWeights(std::string folder) : folder_(std::move(folder)) {}

  // Returns the version of the weights that compute the output tokens now. Never null.
  std::shared_ptr<const std::string> version() const { return version_.load(); }
  void set_version(std::string version) {
    version_ = std::make_shared<const std::string>(std::move(version));
  }

  // Calls act(WeightUpdate&), one call at a time. Returns the errors of `act` and of
  // WeightUpdate::create().
  template <class Act>
  auto change(Act&& act) -> decltype(act(std::declval<WeightUpdate&>())) {
    const std::lock_guard lock(mutex_);
    if (!update_) {
      TRY(update_, WeightUpdate::create(folder_));
    }
    return act(*update_);
  }
  // Ends an update. kept: whether the engine uses the update's weights.
  void settle(bool kept);
  // Call this after the engine has loaded the weights of another folder. "": the engine has loaded the same
  // files again.
  void replaced(const std::string& folder);

 private:
  std::atomic<std::shared_ptr<const std::string>> version_ = std::make_shared<const std::string>("default");
  std::mutex mutex_;
  std::string folder_;
  std::unique_ptr<WeightUpdate> update_;  // null before the first update
};

}  // namespace octavo
