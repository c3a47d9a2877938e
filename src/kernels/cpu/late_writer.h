// Threads that write the panels of matrices while the engine already uses the matrices (late_panels.h).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace octavo::cpu {

// Work on one matrix. Several threads call the functions.
class LateWork {
 public:
  virtual ~LateWork() = default;
  // Does a part of the work. Returns false if no part is left to begin.
  virtual bool write_some() = 0;
  // Returns the number of bytes of memory that the rest of the work will need.
  virtual std::size_t unwritten_bytes() const = 0;
};

// From start() on, the threads process matrices in the order of add(). Their priority is low, so that they
// delay neither the rest of the start nor steps.
class LateWriter {
 public:
  explicit LateWriter(int threads) : count_(threads) {}
  ~LateWriter();
  LateWriter(const LateWriter&) = delete;
  LateWriter& operator=(const LateWriter&) = delete;

  void add(std::shared_ptr<LateWork> work);
  // Does nothing if there is no work.
  void start();
  std::size_t unwritten_bytes() const;

 private:
  void run();

  const int count_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<LateWork>> works_;
  std::size_t next_ = 0;  // index of the first work that may have parts to begin
  bool started_ = false;
  bool stopping_ = false;
  std::int64_t started_us_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace octavo::cpu
