// A network that is built from its spec: inputs, layers and heads, with their parameters.
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
  std::int64_t state_floats = 0;  // floats in the states of all blocks

  // Returns the blocks in the order of the forward pass.
  std::vector<Block*> blocks() const;
  // cache() and entries() are the needs of the block that caches keys and values; source() is the need of the
  // block that caches an encoder's rows. A layer has at most one of each.
  std::optional<CacheNeed> cache() const;
  std::optional<CacheNeed> entries() const;
  std::optional<CacheNeed> source() const;
  // Returns the phase whose block uses the KV cache.
  const Phase& caching_phase() const;
};

struct Network {
  // heads and inputs point to this object, so its address must not change
  std::unique_ptr<Ends> ends = std::make_unique<Ends>();
  // token inputs (only in the first stage) and RoPE angles (in every stage)
  std::vector<std::unique_ptr<Phase>> inputs;
  std::unique_ptr<ResidualScheme> residual;
  std::vector<Layer> layers;
  // Heads. A head is null if the network has no such head, or if another stage has it.
  std::unique_ptr<LogitsHead> logits;
  std::unique_ptr<PoolHeads> pool;
  std::unique_ptr<ProjectHead> project;
  DType plain = DType::f32;  // format of the checkpoint's plain matrices, including matrices on other ranks
  std::vector<std::string> ignorable;  // see Names::ignorable

  std::vector<NetworkPart*> parts() const;  // all parts except `ends`
  ParameterList parameters();
  // Returns the input of this type, or null if the network has none.
  template <class Input>
  const Input* input() const {
    for (const std::unique_ptr<Phase>& phase : inputs)
      if (const auto* found = dynamic_cast<const Input*>(phase.get())) return found;
    return nullptr;
  }
};

// Returns the network without weights. `prefix` is one of its Names::prefixes.
Network network_of(const ModelSpec& spec, const std::string& prefix);
inline Network network_of(const ModelSpec& spec) { return network_of(spec, spec.names.prefixes[0]); }

// Returns the network with the names and the prefix that this checkpoint uses. Returns the errors of
// check_slots() if the checkpoint does not have exactly the network's tensors.
Result<Network> checked_network(const ModelSpec& spec, const Checkpoint& checkpoint);

}  // namespace octavo
