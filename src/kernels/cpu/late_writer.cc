#include "kernels/cpu/late_writer.h"

#include <sys/resource.h>

#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace octavo::cpu {
namespace {

// On a processor of its own, a thread that computes all the time leaves a tenth of it to a thread with this
// priority. Under a CPU quota, all threads of the process share the quota.
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
    works_.push_back(std::move(work));
  }
  wake_.notify_all();
}

void LateWriter::start() {
  {
    const std::lock_guard lock(mutex_);
    if (works_.empty() || std::exchange(started_, true)) return;
    started_us_ = now_us();
  }
  while (std::ssize(threads_) < count_) threads_.emplace_back([this] { run(); });
}

std::size_t LateWriter::unwritten_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& work : works_) bytes += work->unwritten_bytes();
  return bytes;
}

void LateWriter::run() {
  setpriority(PRIO_PROCESS, 0, kNice);  // Linux: only this thread
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || next_ < works_.size(); });
    if (stopping_) return;
    const std::size_t index = next_;
    const std::shared_ptr<LateWork> work = works_[index];
    lock.unlock();
    const bool more = work->write_some();
    lock.lock();
    if (more || next_ != index) continue;
    if (++next_ == works_.size())
      log_info("the last matrices of the file are converted {:.1f} s after the model was loaded",
               static_cast<double>(now_us() - started_us_) * 1e-6);
  }
}

}  // namespace octavo::cpu
