#include "kernels/cpu/late_writer.h"

#include <sys/resource.h>

#include <utility>

namespace octavo::cpu {
namespace {

// Beside a thread that computes all the time, a thread with this priority gets a tenth of a processor.
constexpr int kNice = 10;

}  // namespace

LateWriter::~LateWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void LateWriter::add(std::shared_ptr<LateWork> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  wake_.notify_all();
  while (std::ssize(threads_) < count_) threads_.emplace_back([this] { run(); });
}

std::size_t LateWriter::unwritten_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& work : queue_) bytes += work->unwritten_bytes();
  return bytes;
}

void LateWriter::run() {
  setpriority(PRIO_PROCESS, 0, kNice);  // Linux: only this thread
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const std::shared_ptr<LateWork> work = queue_.front();
    lock.unlock();
    const bool more = work->write_some();
    lock.lock();
    if (!more && !queue_.empty() && queue_.front() == work) queue_.pop_front();
  }
}

}  // namespace octavo::cpu
