// A network made from its spec: inputs, layers and heads, with all their parameters.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/blocks/block.h"
#include "model/ends.h"
#include "model/heads/logits.h"
#include "model/heads/pool.h"
#include "model/heads/project.h"
#include "model/part.h"
#include "model/residual/scheme.h"
#include "model/spec.h"

namespace octavo {

struct Layer {
  std::vector<std::unique_ptr<Phase>> phases;
  std::int64_t state_floats = 0;  // floats of all blocks' states

  // Blocks in the order of the forward pass.
  std::vector<Block*> blocks() const;
  // At most one of the blocks has cached keys and values, and at most one stores an encoder's rows.
  std::optional<CacheNeed> cache() const;
  std::optional<CacheNeed> entries() const;
  std::optional<CacheNeed> source() const;
  // The phase with the cached block.
  const Phase& caching_phase() const;
};

struct Network {
  std::unique_ptr<Ends> ends = std::make_unique<Ends>();  // which other parts refer to
  std::vector<std::unique_ptr<Phase>> inputs;             // inputs of the first stage; angles: of every stage
  std::unique_ptr<ResidualScheme> residual;
  std::vector<Layer> layers;  // layers of this stage
  // Heads, each null where the network has none, or another stage has it.
  std::unique_ptr<LogitsHead> logits;
  std::unique_ptr<PoolHeads> pool;
  std::unique_ptr<ProjectHead> project;
  DType plain = DType::f32;            // format of the checkpoint's plain matrices, other ranks' included
  std::vector<std::string> ignorable;  // tensors that may be in a checkpoint, as in Names

  std::vector<NetworkPart*> parts() const;  // all but the ends
  ParameterList parameters();
  // The input of this kind, or null.
  template <class Input>
  const Input* input() const {
    for (const std::unique_ptr<Phase>& phase : inputs)
      if (const auto* found = dynamic_cast<const Input*>(phase.get())) return found;
    return nullptr;
  }
};

// The network with tensors named as under one of its Names::prefixes, without any values.
Network network_of(const ModelSpec& spec, const std::string& prefix);
inline Network network_of(const ModelSpec& spec) { return network_of(spec, spec.names.prefixes[0]); }

// The same, under the names and the prefix that the checkpoint uses, when it holds exactly these tensors.
// Errors: see check_slots.
Result<Network> checked_network(const ModelSpec& spec, const Checkpoint& checkpoint);

}  // namespace octavo
