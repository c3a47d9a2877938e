// The set of running generations, which the server ends when it stops.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace octavo {

class Generation;

// Any thread may call the functions.
class LiveGenerations {
 public:
  void add(const std::shared_ptr<Generation>& generation) {
    const std::lock_guard lock(mutex_);
    live_.emplace(generation.get(), generation);
  }
  void remove(const Generation* generation) {
    const std::lock_guard lock(mutex_);
    live_.erase(generation);
  }
  int count() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(live_.size());
  }
  std::vector<std::shared_ptr<Generation>> all() const {
    std::vector<std::shared_ptr<Generation>> all;
    const std::lock_guard lock(mutex_);
    for (const auto& [key, weak] : live_)
      if (auto generation = weak.lock()) all.push_back(std::move(generation));
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const Generation*, std::weak_ptr<Generation>> live_;
};

}  // namespace octavo
