// Interfaces of a network's parts. Every part has parameters, workspaces, and a run() that one step calls.
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

  virtual void list(ParameterList&) {}
  // Called once, after all parameters were loaded.
  virtual void loaded() {}
  virtual void reserve(Arena) const {}
  // Checks whether this part of an unsplit network can be split over ranks. Errors: unsupported (the message
  // names the part), or invalid_argument (the number that is not a multiple of shard.size).
  virtual Result<> splits(const Shard&) const { return {}; }
  // Returns what the part needs from a backend beyond the operators that all backends have
  // (operators/list.h).
  virtual std::vector<Need> needs() const { return {}; }
  // Returns whether the part reads results of another layer. Then both layers must be in one stage.
  virtual bool spans_layers() const { return false; }
};

// Make the errors of NetworkPart::splits().
Result<> not_split(std::string_view what);
Result<> divides(const Shard& shard, std::int64_t number, std::string_view what);

// A part that reads or changes the residual. A step runs all phases one after another.
class Phase : public NetworkPart {
 public:
  // Appends the phase's blocks, in the order of the forward pass.
  virtual void add_blocks(std::vector<Block*>&) const {}
  void loaded() override;
  Result<> splits(const Shard& shard) const override;
  bool spans_layers() const override;
  // Must not allocate memory.
  virtual void run(const Step& step) const = 0;
  // Calls Block::store_rows() with the input of the block. Phases that cache keys and values implement it.
  virtual void store_rows(const Step&) const {}
};

}  // namespace octavo
