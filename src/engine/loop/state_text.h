// Formats the state of the engine for logs. The result has numbers and ids, but no text of requests.
#pragma once

#include <string>

#include "engine/loop/answer_table.h"
#include "schedule/scheduler.h"

namespace octavo {

// Returns one line with the number of tokens of each sequence in the step, and the preempted sequences.
std::string plan_text(const StepPlan& plan);

// Returns several lines: queues and blocks, then one line for each unfinished answer.
std::string state_text(const Scheduler& scheduler, AnswerTable& answers);

}  // namespace octavo
