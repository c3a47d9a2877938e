// Ends generations whose deadline has passed.
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

  // Stops the thread; no generation is ended after this. Not from the end of a generation: it waits for that
  // one.
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
