// Ends generations whose clients gave them a time.
#pragma once

#include <condition_variable>
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

  // Ends nothing any more. Not from a generation's own end: it waits for the one that is being ended.
  void stop();

  // at_us: as now_us(). Does nothing for a generation that ends before.
  void add(std::int64_t at_us, std::weak_ptr<Generation> generation);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<std::int64_t, std::weak_ptr<Generation>> due_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace octavo
