// Runs attention and an MLP that several layers share (SharedTransformer).
#pragma once

#include <array>

#include "model/blocks/block.h"
#include "model/residual/half.h"

namespace octavo {

// run() must receive the output of input_norm(), whose rows are twice as wide as the network.
class SharedTransformerBlock final : public Block {
 public:
  // `owned` makes the names of the shared tensors, which are the names of the first layer with the block.
  // `own` makes the names of this layer's tensors. `owner` is the first layer's block, or null if this is the
  // first layer. It must outlive this block.
  SharedTransformerBlock(const SharedTransformer& spec, const Namer& owned, const Namer& own,
                         std::int64_t dim, const SharedTransformerBlock* owner);

  // Norm of the concatenated residual and embedding.
  Norm input_norm() const { return matrices().input_norm.norm(); }

  void list(ParameterList& list) override;
  std::optional<CacheNeed> cache() const override;
  void reserve(Arena arena) const override;
  Result<> splits(const Shard&) const override { return not_split("layers that share attention and MLP"); }
  bool spans_layers() const override { return true; }
  BlockCost cost(const Pass& pass) const override;
  std::string text() const override;
  void run(const Step& step, const View& x, const View& out) const override;

 private:
  // All uses of the block share these parameters.
  struct Matrices {
    NormParameter input_norm, mlp_norm;
    LinearParameter qkv, attention_out, up, down;
  };
  // Adds up * down * x to the columns of y from `first` on.
  struct LowRank {
    LinearParameter down, up;
    std::int64_t first = 0;
  };
  struct Work {
    View qkv, q, attended, sum, normed, up, hidden, made, low, delta;
  };

  const Matrices& matrices() const { return owner_ != nullptr ? owner_->matrices_ : matrices_; }
  Work take(Scratch& scratch, std::int64_t n, DType act) const;
  void add(const Step& step, const LowRank& product, const View& x, const Work& work,
           const View& y) const;

  SharedTransformer spec_;
  std::int64_t dim_;
  const SharedTransformerBlock* owner_;
  Matrices matrices_;  // parameters of all uses; empty unless this is the first layer with the block
  std::vector<LowRank> attention_;  // changes of queries, keys and values
  LowRank mlp_;
  LinearParameter out_;
};

struct PairRows {};   // f32 [tokens, 2 * dim]: residual and embedding, concatenated
struct PairInput {};  // act [tokens, 2 * dim]: PairRows after the shared norm

// Copies the embeddings into PairRows, once per step for all layers.
class CopyEmbedding final : public Phase {
 public:
  explicit CopyEmbedding(std::int64_t dim) : dim_(dim) {}

  void reserve(Arena arena) const override;
  void run(const Step& step) const override;

 private:
  std::int64_t dim_;
};

// A mixer whose input is the residual plus the output of the shared block.
class SharedHalf final : public LayerHalf {
 public:
  SharedHalf(std::unique_ptr<SharedTransformerBlock> shared, std::unique_ptr<Block> mixer, HalfNorms norms, float scale,
             std::int64_t dim)
      : LayerHalf(std::move(mixer), std::move(norms), scale, dim), shared_(std::move(shared)) {}

  const SharedTransformerBlock& shared() const { return *shared_; }
  void list(ParameterList& list) override;
  void add_blocks(std::vector<Block*>& all) const override;
  void reserve(Arena arena) const override;

 private:
  View enter(const Step& step) const override;

  std::unique_ptr<SharedTransformerBlock> shared_;
};

}  // namespace octavo
