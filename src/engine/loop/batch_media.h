// Finds the rows of encoded media for the tokens of a batch, and sets the positions of tokens on the grids
// of images.
#pragma once

#include "engine/execute/batch.h"
#include "engine/loop/answer_table.h"
#include "schedule/scheduler.h"

namespace octavo {

// Fills the images, sources and axes of a packed batch.
void add_media(const StepPlan& plan, AnswerTable& answers, Batch& batch);

}  // namespace octavo
