// Counts the cost of each answer (request/answer_cost.h).
//
// The time of a step is the time in StepLoop::run() between the moments at which the tokens of the previous
// step and of this step are known. It includes planning, the forward pass, sampling, and the rest of the
// previous step (grammars, draft tokens). The time is divided among the answers that the step computed and
// that have not ended, in proportion to the work that the roofline model estimates. The shares are
// integers, and their sum is the time of the step.
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
  int first = 0;
  int tokens = 0;
  int drafts = 0;
};

// Divides `amount` in proportion to the weights, which must not be negative. Each share differs by less
// than 1 from its exact value, and the sum of the shares is `amount`. If all weights are 0, the last share
// is `amount`.
void divide(std::int64_t amount, std::span<const double> weights, std::span<std::int64_t> shares);

// Estimates how much of a step's work belongs to each sequence.
class StepWeights {
 public:
  explicit StepWeights(const WorkFigures& figures) : figures_(figures) {}

  // Sets weights[i] to the estimated work of parts[i]. Work is expressed as the number of bytes that the
  // device could read in the same time.
  void weigh(std::span<const StepPart> parts, std::span<double> weights) const;
  // Calibrates operations_per_byte() with a measured step.
  void note(std::span<const StepPart> parts, std::int64_t nanoseconds);
  double operations_per_byte() const;

 private:
  double bytes(double tokens, double kv_tokens) const;
  double operations(double tokens, double pairs) const;

  WorkFigures figures_;
  double ns_per_byte_ = 0;       // running mean over steps with few tokens; 0: not measured
  double ns_per_operation_ = 0;  // running mean over steps with many tokens; 0: not measured
};

class StepCosts {
 public:
  StepCosts(Scheduler& scheduler, AnswerTable& answers, const WorkFigures& figures)
      : scheduler_(scheduler), answers_(answers), weights_(figures) {}

  // Called at the beginning and at the end of StepLoop::run(). `worked` is false if no step was planned or
  // in flight; no answer then pays for the time.
  void resume(std::int64_t now_ns) { since_ns_ = now_ns; }
  void pause(std::int64_t now_ns, bool worked) {
    if (worked) carried_ns_ += now_ns - since_ns_;
  }

  std::vector<StepPart> parts_of(const StepPlan& plan, std::int64_t now_ns);
  // Must be called after each plan, even if it is empty.
  void note_preempted(const StepPlan& plan, std::int64_t now_ns) const;
  // Called when a sequence has lost its blocks without ending.
  void lost_blocks(AnswerIndex answer, std::int64_t now_ns) const;
  // Called when the tokens of a step are known.
  void computed(std::vector<StepPart>&& parts, std::int64_t now_ns);

  CostStats stats() const {
    return {.compute_ns = compute_ns_, .unassigned_ns = unassigned_ns_, .energy = energy_.readable()};
  }

 private:
  Scheduler& scheduler_;
  AnswerTable& answers_;
  StepWeights weights_;
  EnergyMeter energy_;
  std::int64_t since_ns_ = 0;    // the time of the current run() is divided among the answers up to this time
  std::int64_t carried_ns_ = 0;  // time of earlier run() calls that is not divided yet
  std::int64_t compute_ns_ = 0, unassigned_ns_ = 0;
  std::vector<StepPart> spare_;       // kept to reuse its memory
  std::vector<double> work_;          // scratch memory
  std::vector<std::int64_t> shares_;  // scratch memory
};

}  // namespace octavo
