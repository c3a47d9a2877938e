// The LoRA adapters that requests can name as their model.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace octavo {

struct AdapterCard {
  std::string name;
  std::string path;
  std::string parent;
  std::int64_t created_at = 0;  // seconds since 1970
};

// Any thread may call the functions.
class AdapterNames {
 public:
  // Returns false if the name is already in use.
  bool add(const AdapterCard& card) {
    const std::lock_guard lock(mutex_);
    return cards_.emplace(card.name, card).second;
  }
  // Returns false if no adapter has this name.
  bool remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return cards_.erase(name) > 0;
  }
  std::optional<AdapterCard> find(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = cards_.find(name);
    return found == cards_.end() ? std::nullopt : std::optional(found->second);
  }
  // Returns whether requests may use this name: it was added, or the function from look_further() finds it.
  // Returns an error if the adapter exists but cannot be loaded.
  Result<bool> offers(const std::string& name) const {
    if (find(name)) return true;
    return look_ ? look_(name) : false;
  }
  // Sets the function that looks for names that were not added. Call it once, before the first request.
  void look_further(std::function<Result<bool>(const std::string&)> look) { look_ = std::move(look); }
  std::vector<AdapterCard> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<AdapterCard> all;
    for (const auto& [name, card] : cards_) all.push_back(card);
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, AdapterCard> cards_;
  std::function<Result<bool>(const std::string&)> look_;
};

}  // namespace octavo
