// Balances the experts of a stage's ranks while they serve: counts tokens, plans, and moves experts between
// two steps. One on each rank; all of them count the same steps, and those of one stage act together.
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
  // group: of the ranks that share the model's layers; both live longer. Collective. Errors: unsupported, a
  // layer whose experts are stored in several formats; not enough memory for the experts that come.
  static Result<std::unique_ptr<ExpertBalancer>> create(const ExpertBalancing& options, const Model& model,
                                                        ProcessGroup& group);

  // Before each forward pass, on all ranks alike: moves experts if some are to be moved. The group tells of
  // failures.
  void before_step();

 private:
  ExpertBalancer(const ExpertBalancing& options, ProcessGroup& group) : options_(options), group_(group) {}
  void plan();
  void move(std::size_t layer);

  const ExpertBalancing options_;
  ProcessGroup& group_;
  std::vector<ExpertSpread*> layers_;  // of this stage
  std::vector<ExpertPlacement>
      next_;  // of the plan that is under way, by layer; those before moving_ are done
  std::size_t moving_ = 0;
  std::int64_t steps_ = 0;  // since the last plan
  Buffer staging_;
};

}  // namespace octavo
