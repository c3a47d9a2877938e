#include "engine/mask_worker.h"

#include <utility>

namespace octavo {

MaskWorker::MaskWorker(Done done) : done_(std::move(done)), thread_([this] { run(); }) {}

MaskWorker::~MaskWorker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  came_.notify_one();
  thread_.join();
}

void MaskWorker::post(SequenceId sequence, std::shared_ptr<GuidedText> text) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back({sequence, std::move(text)});
  }
  came_.notify_one();
}

void MaskWorker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    came_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task.text->advance();
    done_(task.sequence);
    lock.lock();
  }
}

}  // namespace octavo
