// Media of a step: which rows of encoded images stand for which tokens of its batch, and positions on an
// image's grid.
#pragma once

#include "engine/execute/batch.h"
#include "engine/loop/answer_table.h"
#include "schedule/scheduler.h"

namespace octavo {

// Fills images, sources and axes of a packed batch.
void add_media(const StepPlan& plan, AnswerTable& answers, Batch& batch);

}  // namespace octavo
