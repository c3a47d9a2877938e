// Makes slow masks on a separate thread. The sequence is parked, and no other sequence waits.
#pragma once

#include <memory>

#include "engine/loop/guided_text.h"
#include "engine/loop/task_thread.h"
#include "schedule/sequence.h"

namespace octavo {

// Task to call text->advance(). No other thread uses the text until it is done.
struct MaskTask {
  SequenceId sequence;
  std::shared_ptr<GuidedText> text;
};

using MaskWorker = TaskThread<MaskTask>;

}  // namespace octavo
