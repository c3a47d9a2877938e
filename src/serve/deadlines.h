// Wakes generations at moments that they have asked for: their client's deadline, the end of a stream's
// silence.
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

// Any thread. Has its own thread.
class Deadlines {
 public:
  Deadlines();
  ~Deadlines();

  // Wakes nothing any more. Not from a generation's own end: it waits for the one that is being woken.
  void stop();

  // at_us: as now_us(). Does nothing for a generation that ends before.
  void add(std::int64_t at_us, std::weak_ptr<Generation> generation);

 private:
  static constexpr std::size_t kCleanupAtLeast = 64;

  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<std::int64_t, std::weak_ptr<Generation>> due_;
  std::size_t cleanup_at_ = kCleanupAtLeast;  // entries
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace octavo
