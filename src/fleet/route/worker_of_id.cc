#include "fleet/route/worker_of_id.h"

#include <utility>

namespace octavo::fleet {

void WorkerOfId::learn(std::string_view id, Worker worker) {
  constexpr std::size_t kIdBytesMax = 256;
  if (id.empty() || id.size() > kIdBytesMax) return;
  const std::string key(id);
  const std::lock_guard lock(mutex_);
  if (const auto known = by_id_.find(key); known != by_id_.end()) {
    newest_first_.erase(known->second);
  } else if (newest_first_.size() == kIdsMax) {
    by_id_.erase(newest_first_.back().id);
    newest_first_.pop_back();
  }
  newest_first_.push_front({key, std::move(worker)});
  by_id_[key] = newest_first_.begin();
}

void WorkerOfId::forget(std::string_view worker) {
  const std::lock_guard lock(mutex_);
  std::erase_if(newest_first_, [&](const Entry& entry) {
    if (entry.worker->name != worker) return false;
    by_id_.erase(entry.id);
    return true;
  });
}

WorkerOfId::Worker WorkerOfId::find(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto known = by_id_.find(std::string(id));
  return known == by_id_.end() ? nullptr : known->second->worker;
}

std::string_view created_id(std::string_view answer, std::string_view prefix) {
  constexpr std::string_view kName = "\"id\"";
  for (std::size_t at = answer.find(kName); at != std::string_view::npos; at = answer.find(kName, at + 1)) {
    const std::size_t begin = answer.find('"', at + kName.size());
    if (begin == std::string_view::npos) return {};
    const std::string_view text = answer.substr(begin + 1, answer.find('"', begin + 1) - begin - 1);
    if (text.starts_with(prefix)) return text;
  }
  return {};
}

}  // namespace octavo::fleet
