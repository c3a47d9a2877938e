// Fills the media fields of a batch: the rows of encoded media that its tokens use, and the positions of
// its tokens on image grids.
#pragma once

#include "engine/execute/batch.h"
#include "engine/loop/answer_table.h"
#include "schedule/scheduler.h"

namespace octavo {

// Sets Batch::images, wholes, sources and axes. The batch must be packed.
void add_media(const StepPlan& plan, AnswerTable& answers, Batch& batch);

}  // namespace octavo
