// A network built from its spec: inputs, layers and heads, with their parameters.
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
  std::int64_t state_floats = 0;  // number of f32 values in the states of all blocks

  // Blocks in the order of the forward pass.
  std::vector<Block*> blocks() const;
  // Needs of the block with cached keys and values, and of the block that stores an encoder's rows. A layer
  // has at most one of each.
  std::optional<CacheNeed> cache() const;
  std::optional<CacheNeed> entries() const;
  std::optional<CacheNeed> source() const;
  // The phase that runs the block with the KV cache.
  const Phase& caching_phase() const;
};

struct Network {
  std::unique_ptr<Ends> ends = std::make_unique<Ends>();  // other parts refer to it, so its address must not
                                                          // change
  std::vector<std::unique_ptr<Phase>> inputs;             // inputs, in the first stage; angles, in every
                                                          // stage
  std::unique_ptr<ResidualScheme> residual;
  std::vector<Layer> layers;  // layers of this stage
  // Heads; null if the network has no such head, or another stage has it.
  std::unique_ptr<LogitsHead> logits;
  std::unique_ptr<PoolHeads> pool;
  std::unique_ptr<ProjectHead> project;
  DType plain = DType::f32;            // format of the checkpoint's plain matrices, including other ranks'
  std::vector<std::string> ignorable;  // see Names::ignorable

  std::vector<NetworkPart*> parts() const;  // all parts except `ends`
  ParameterList parameters();
  // The input of this type; null if the network has none.
  template <class Input>
  const Input* input() const {
    for (const std::unique_ptr<Phase>& phase : inputs)
      if (const auto* found = dynamic_cast<const Input*>(phase.get())) return found;
    return nullptr;
  }
};

// The network, without values. prefix: one of its Names::prefixes.
Network network_of(const ModelSpec& spec, const std::string& prefix);
inline Network network_of(const ModelSpec& spec) { return network_of(spec, spec.names.prefixes[0]); }

// The network with the names and the prefix that this checkpoint uses. Errors if the checkpoint does not have
// exactly these tensors: see check_slots.
Result<Network> checked_network(const ModelSpec& spec, const Checkpoint& checkpoint);

}  // namespace octavo
