// Counts the cost of each answer (request/answer_cost.h).
//
// The time of a step begins when the tokens of the previous step are known, and ends when its own tokens are
// known. Only time in StepLoop::run() counts: planning, the forward pass, sampling, and the rest of the
// previous step (grammars, draft tokens). The time is divided among the answers that the step
// computed and that have not ended, by the roofline model: matrix products by tokens, attention by cached
// positions or by pairs, whichever takes longer. The shares are integers, and their sum is the step's time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/loop/answer_table.h"
#include "engine/loop/energy_meter.h"
#include "engine/loop/step_records.h"
#include "request/engine_stats.h"
#include "schedule/scheduler.h"

namespace octavo {

// The part of a step that belongs to one sequence.
struct StepPart {
  SequenceId sequence{};
  AnswerIndex answer = 0;
  int first = 0;   // position of the first token
  int tokens = 0;  // number of computed tokens, without draft tokens
  int drafts = 0;
};

// Divides `amount` in proportion to the weights, which are not negative: shares[i] differs by less than 1
// from its exact share, and the sum is `amount`. If all weights are 0, the last share is `amount`.
void divide(std::int64_t amount, std::span<const double> weights, std::span<std::int64_t> shares);

// Weights of the parts of one step.
class StepWeights {
 public:
  explicit StepWeights(const WorkFigures& figures) : figures_(figures) {}

  // Sets weights[i] to the estimated work of parts[i], in bytes that the device reads in the same time.
  void weigh(std::span<const StepPart> parts, std::span<double> weights) const;
  // Calibrates the number of operations that the device does per byte that it reads, with a measured step.
  void note(std::span<const StepPart> parts, std::int64_t nanoseconds);
  double operations_per_byte() const;

 private:
  double bytes(double tokens, double kv_tokens) const;
  double operations(double tokens, double pairs) const;

  WorkFigures figures_;
  double ns_per_byte_ = 0;       // running mean over steps with few tokens; 0: none yet
  double ns_per_operation_ = 0;  // running mean over steps with many tokens; 0: none yet
};

class StepCosts {
 public:
  StepCosts(Scheduler& scheduler, AnswerTable& answers, const WorkFigures& figures)
      : scheduler_(scheduler), answers_(answers), weights_(figures) {}

  // Called at the beginning and at the end of StepLoop::run(). worked: false if no step was planned or in
  // flight; that time belongs to no answer.
  void resume(std::int64_t now_ns) { since_ns_ = now_ns; }
  void pause(std::int64_t now_ns, bool worked) {
    if (worked) carried_ns_ += now_ns - since_ns_;
  }

  std::vector<StepPart> parts_of(const StepPlan& plan, std::int64_t now_ns);
  // Called after each plan, also after an empty one.
  void note_preempted(const StepPlan& plan, std::int64_t now_ns) const;
  // Called when a sequence has lost its blocks without ending.
  void lost_blocks(AnswerIndex answer, std::int64_t now_ns) const;
  // Called when the tokens of a step are known.
  void computed(std::vector<StepPart>&& parts, std::int64_t now_ns);

  CostStats stats() const {
    return {.compute_ns = compute_ns_, .unassigned_ns = unassigned_ns_, .energy = energy_.readable()};
  }

 private:
  void count(Answer& answer, const StepPart& part, std::int64_t now_ns) const;

  Scheduler& scheduler_;
  AnswerTable& answers_;
  StepWeights weights_;
  EnergyMeter energy_;
  std::int64_t since_ns_ = 0;    // from here on, the time of run() is not divided
  std::int64_t carried_ns_ = 0;  // time of earlier calls of run() that is not divided
  std::int64_t compute_ns_ = 0, unassigned_ns_ = 0;
  std::vector<StepPart> spare_;       // memory of the next parts_of()
  std::vector<double> work_;          // scratch memory
  std::vector<std::int64_t> shares_;  // scratch memory
};

}  // namespace octavo
