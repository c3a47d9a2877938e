// Balances experts among the ranks of a stage at run time: counts tokens, plans, and moves experts between
// two steps. Each rank has a balancer. All balancers count the same steps; those of one stage plan and move
// together.
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
  // group: ranks that share the model's layers. model and group must live longer. Collective. Returns
  // unsupported for a layer whose experts have several formats, and an error if memory for the arriving
  // experts does not suffice.
  static Result<std::unique_ptr<ExpertBalancer>> create(const ExpertBalancing& options, const Model& model,
                                                        ProcessGroup& group);

  // Called on all ranks before each forward pass. It moves experts if the plan requires it. `group` reports
  // failures.
  void before_step();

 private:
  ExpertBalancer(const ExpertBalancing& options, ProcessGroup& group) : options_(options), group_(group) {}
  void plan();
  void move(std::size_t layer);

  const ExpertBalancing options_;
  ProcessGroup& group_;
  std::vector<ExpertSpread*> layers_;  // layers of this stage
  std::vector<ExpertPlacement> next_;  // current plan, by layer; layers below moving_ are done
  std::size_t moving_ = 0;
  std::int64_t steps_ = 0;  // number of steps since the last plan
  Buffer staging_;
};

}  // namespace octavo
