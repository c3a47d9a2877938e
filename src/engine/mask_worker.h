// Makes the masks that are not ready in time, on a thread of its own: the sequence is parked, and no other
// waits.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/guided_text.h"
#include "schedule/sequence.h"

namespace octavo {

class MaskWorker {
 public:
  using Done = std::function<void(SequenceId)>;

  // `done` is called on the worker's thread, for each text in turn.
  explicit MaskWorker(Done done);
  ~MaskWorker();  // waits for the text under way, forgets the others

  // Never waits: text->advance() is called soon. Nobody else touches the text until `done`.
  void post(SequenceId sequence, std::shared_ptr<GuidedText> text);

 private:
  struct Task {
    SequenceId sequence;
    std::shared_ptr<GuidedText> text;
  };

  void run();

  const Done done_;
  std::mutex mutex_;  // guards tasks_ and stopping_
  std::condition_variable came_;
  std::deque<Task> tasks_;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace octavo
