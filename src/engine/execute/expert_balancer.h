// Balances experts among the ranks of a pipeline stage at run time: counts the tokens of each expert, plans
// a new placement, and moves experts between two steps. Each rank has a balancer. All balancers count the
// same steps, so all ranks of a stage plan and move at the same step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dist/process_group.h"
#include "engine/expert_balancing.h"
#include "model/blocks/expert_spread.h"
#include "model/model.h"

namespace octavo {

class ExpertBalancer {
 public:
  // All ranks must call it. `group` has the ranks that share the model's layers; `model` and `group` must
  // outlive this object. Returns unsupported for a layer whose experts have several formats, and an error
  // if there is not enough memory to receive experts.
  static Result<std::unique_ptr<ExpertBalancer>> create(const ExpertBalancing& options, const Model& model,
                                                        ProcessGroup& group);

  // All ranks must call it before each forward pass. Moves experts if a new plan requires it. `group`
  // reports failures.
  void before_step();

 private:
  ExpertBalancer(const ExpertBalancing& options, ProcessGroup& group) : options_(options), group_(group) {}
  void plan();
  void move(std::size_t layer);

  const ExpertBalancing options_;
  ProcessGroup& group_;
  std::vector<ExpertSpread*> layers_;  // layers of this stage
  std::vector<ExpertPlacement> next_;  // [layer]: planned placement; the layers below moving_ are done
  std::size_t moving_ = 0;
  std::int64_t steps_ = 0;
  Buffer staging_;
};

}  // namespace octavo
