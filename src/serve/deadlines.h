// Calls Generation::wake() at requested times: at a client's deadline, or when a stream needs a keep-alive.
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

// Safe from any thread. Has a separate thread.
class Deadlines {
 public:
  Deadlines();
  ~Deadlines();

  // Stops all calls, and waits for a running one. A generation must not call it from wake().
  void stop();

  // at_us: on the clock of now_us(). Does nothing if the generation has ended by then.
  void add(std::int64_t at_us, std::weak_ptr<Generation> generation);

 private:
  static constexpr std::size_t kCleanupAtLeast = 64;

  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<std::int64_t, std::weak_ptr<Generation>> due_;
  std::size_t cleanup_at_ = kCleanupAtLeast;  // number of entries at which ended generations are removed
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace octavo
