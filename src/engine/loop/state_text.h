// Text about the state of the engine, for logs. It has numbers and ids, but no text of a request.
#pragma once

#include <string>

#include "engine/loop/answer_table.h"
#include "schedule/scheduler.h"

namespace octavo {

// One line: the tokens of each sequence of a step, and the sequences that lost their blocks.
std::string plan_text(const StepPlan& plan);

// Several lines: queues and blocks, then a line for each unfinished answer.
std::string state_text(const Scheduler& scheduler, AnswerTable& answers);

}  // namespace octavo
