// Parts of a network, each with its parameters, its workspaces and its run().
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "kernels/ops.h"
#include "model/parameters.h"
#include "model/step.h"

namespace octavo {

class Block;

class NetworkPart {
 public:
  virtual ~NetworkPart() = default;

  // Adds all parameters.
  virtual void list(ParameterList&) {}
  // Called once when all of them have their values.
  virtual void loaded() {}
  // Reserves working memory.
  virtual void reserve(Arena) const {}
  // Whether ranks can share this part of a whole network. Errors: unsupported, naming the part that cannot
  // be split; invalid, naming the number that shard.size does not divide.
  virtual Result<> splits(const Shard&) const { return {}; }
  // Requirements beyond the operators that all backends have (operators/list.h).
  virtual std::vector<Need> needs() const { return {}; }
  // Whether it reads results of another layer, so that both must be in one stage.
  virtual bool spans_layers() const { return false; }
};

// For NetworkPart::splits().
Result<> not_split(std::string_view what);
Result<> divides(const Shard& shard, std::int64_t number, std::string_view what);

// A part that reads or changes the residual: a step is one phase after the other.
class Phase : public NetworkPart {
 public:
  // Adds the blocks that it runs, in the order of the forward pass.
  virtual void add_blocks(std::vector<Block*>&) const {}
  void loaded() override;
  Result<> splits(const Shard& shard) const override;
  bool spans_layers() const override;
  // Allocates nothing.
  virtual void run(const Step& step) const = 0;
  // In the first phase with keys and values: Block::store_rows() of its block's input.
  virtual void store_rows(const Step&) const {}
};

}  // namespace octavo
