// Media of a step: finds the rows of encoded images for the tokens of the batch, and sets positions on
// the grids of images.
#pragma once

#include "engine/execute/batch.h"
#include "engine/loop/answer_table.h"
#include "schedule/scheduler.h"

namespace octavo {

// Fills the images, sources and axes of a packed batch.
void add_media(const StepPlan& plan, AnswerTable& answers, Batch& batch);

}  // namespace octavo
