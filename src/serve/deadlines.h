// Calls Generation::wake() at given times: when a client's timeout ends, or when a stream needs a keep-alive.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace octavo {

class Generation;

// Calls wake() on a separate thread. Any thread may call the functions.
class Deadlines {
 public:
  Deadlines();
  ~Deadlines();

  // Stops all calls, and waits for the current call to return. A generation must not call stop() from
  // wake().
  void stop();

  // at_us: a time on the clock of now_us(). wake() is not called if the generation has ended before this
  // time.
  void add(std::int64_t at_us, std::weak_ptr<Generation> generation);

 private:
  static constexpr std::size_t kCleanupAtLeast = 64;

  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<std::int64_t, std::weak_ptr<Generation>> due_;
  // when due_ has this number of entries, entries of ended generations are removed
  std::size_t cleanup_at_ = kCleanupAtLeast;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace octavo
