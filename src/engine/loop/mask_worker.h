// Makes the masks that are not ready in time, on a thread of its own: the sequence is parked, and no other
// waits.
#pragma once

#include <memory>

#include "engine/loop/guided_text.h"
#include "engine/loop/task_thread.h"
#include "schedule/sequence.h"

namespace octavo {

// text->advance() is to be called soon. Nobody else touches the text until then.
struct MaskTask {
  SequenceId sequence;
  std::shared_ptr<GuidedText> text;
};

using MaskWorker = TaskThread<MaskTask>;

}  // namespace octavo
