#include "serve/served_weights.h"

namespace octavo {

void ServedWeights::settle(bool kept) {
  const std::lock_guard lock(mutex_);
  if (!update_) return;
  if (kept)
    update_->keep();
  else
    update_->drop();
}

void ServedWeights::replaced(const std::string& folder) {
  if (folder.empty()) return;
  const std::lock_guard lock(mutex_);
  folder_ = folder;
  update_.reset();
}

}  // namespace octavo
