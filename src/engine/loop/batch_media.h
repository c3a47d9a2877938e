// Media of a step: maps rows of encoded images to the tokens of the batch, and sets the positions on an
// image's grid.
#pragma once

#include "engine/execute/batch.h"
#include "engine/loop/answer_table.h"
#include "schedule/scheduler.h"

namespace octavo {

// Fills the images, sources and axes of a packed batch.
void add_media(const StepPlan& plan, AnswerTable& answers, Batch& batch);

}  // namespace octavo
