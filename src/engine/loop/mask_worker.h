// Computes slow grammar masks on a separate thread. Only the sequence that needs the mask waits, and it is
// parked.
#pragma once

#include <memory>

#include "engine/loop/guided_text.h"
#include "engine/loop/task_thread.h"
#include "schedule/sequence.h"

namespace octavo {

// A call of text->advance(). Until it returns, no other thread may use the text.
struct MaskTask {
  SequenceId sequence;
  std::shared_ptr<GuidedText> text;
};

using MaskWorker = TaskThread<MaskTask>;

}  // namespace octavo
