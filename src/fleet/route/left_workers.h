// The workers that have left the fleet. For a short time, their sessions may still move to other workers.
// Later, the router forgets their sessions: another program may use the address, and must not get the
// credentials of clients.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace octavo::fleet {

class LeftWorkers {
 public:
  static constexpr std::int64_t kKeptUs = 60'000'000;

  void left(const std::string& name, std::int64_t now_us) { since_us_.try_emplace(name, now_us); }
  void returned(const std::string& name) { since_us_.erase(name); }
  // Returns, and removes, the workers that left at least kKeptUs ago.
  std::vector<std::string> take_forgotten(std::int64_t now_us) {
    std::vector<std::string> forgotten;
    std::erase_if(since_us_, [&](const auto& worker) {
      if (now_us - worker.second < kKeptUs) return false;
      forgotten.push_back(worker.first);
      return true;
    });
    return forgotten;
  }

 private:
  std::unordered_map<std::string, std::int64_t> since_us_;  // by endpoint name
};

}  // namespace octavo::fleet
