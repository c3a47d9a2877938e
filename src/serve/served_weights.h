// The weights that the engine uses: their version, and an update that a client sends. Thread-safe.
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
  // folder: the model's folder or file
  explicit ServedWeights(std::string folder) : folder_(std::move(folder)) {}

  // The version of the tokens that the engine delivers now. Never null.
  std::shared_ptr<const std::string> version() const { return version_.load(); }
  void set_version(std::string version) {
    version_ = std::make_shared<const std::string>(std::move(version));
  }

  // Calls act(WeightUpdate&) alone. Errors: those of act, and of WeightUpdate::create().
  template <class Act>
  auto change(Act&& act) -> decltype(act(std::declval<WeightUpdate&>())) {
    const std::lock_guard lock(mutex_);
    if (!update_) {
      TRY(update_, WeightUpdate::create(folder_));
    }
    return act(*update_);
  }
  // Ends an update that was sent. kept: the engine uses its weights.
  void settle(bool kept);
  // Called when the engine uses the weights of another folder; "": the same files again.
  void replaced(const std::string& folder);

 private:
  std::atomic<std::shared_ptr<const std::string>> version_ = std::make_shared<const std::string>("default");
  std::mutex mutex_;
  std::string folder_;
  std::unique_ptr<WeightUpdate> update_;  // null before the first update
};

}  // namespace octavo
