// Phases that run a block and add its output to the residual. Layers differ in where the norms are.
#pragma once

#include <memory>

#include "model/blocks/block.h"
#include "model/part.h"
#include "model/residual/residual.h"

namespace octavo {

// Slots for the input of a block, act [tokens, dim], and its output, Arena::sums [tokens, dim]. Slot number 1
// is for a second block of the same layer, which runs before the first block's output is added to the
// residual.
struct HalfInput {};
struct HalfOutput {};
void reserve_half(const Arena& arena, std::int64_t dim, int number = 0);

// Runs the block. With several ranks, each rank computes a part of the output, and the parts are added up.
void run_on_ranks(const Step& step, const Block& block, const View& x, const View& out);

struct HalfNorms {
  NormParameter pre = {}, post = {};
};

// x += scale * post(block(pre(x)))
class LayerHalf : public Phase {
 public:
  LayerHalf(std::unique_ptr<Block> block, HalfNorms norms, float scale, std::int64_t dim)
      : block_(std::move(block)), norms_(std::move(norms)), scale_(scale), dim_(dim) {}

  void list(ParameterList& list) override;
  void add_blocks(std::vector<Block*>& all) const override { all.push_back(block_.get()); }
  void reserve(Arena arena) const override;
  void run(const Step& step) const final;
  void store_rows(const Step& step) const final;

 protected:
  virtual View enter(const Step& step) const;
  virtual void leave(const Step& step, const View& out) const;

  const Block& block() const { return *block_; }
  const HalfNorms& norms() const { return norms_; }
  float scale() const { return scale_; }
  std::int64_t dim() const { return dim_; }

 private:
  std::unique_ptr<Block> block_;
  HalfNorms norms_;
  float scale_;
  std::int64_t dim_;
};

// x = post(x + block(x)), as in BERT
class PostNormHalf final : public LayerHalf {
 public:
  using LayerHalf::LayerHalf;

 private:
  void leave(const Step& step, const View& out) const override;
};

// x = pre(x), x += block(x), as in MiniMax
class FromNormHalf final : public LayerHalf {
 public:
  using LayerHalf::LayerHalf;

 private:
  View enter(const Step& step) const override;
};

// x += scale * block(input of the previous half), for the second of Falcon-H1's two mixers
class SecondMixer final : public Phase {
 public:
  SecondMixer(std::unique_ptr<Block> block, float scale, std::int64_t dim)
      : block_(std::move(block)), scale_(scale), dim_(dim) {}

  void list(ParameterList& list) override { block_->list(list); }
  void add_blocks(std::vector<Block*>& all) const override { all.push_back(block_.get()); }
  void reserve(Arena arena) const override;
  void run(const Step& step) const override;

 private:
  std::unique_ptr<Block> block_;
  float scale_;
  std::int64_t dim_;
};

// x += mixer(pre_1(x)) + feed_forward(pre_2(x)), where pre_1 and pre_2 may be the same norm
class ParallelHalves final : public Phase {
 public:
  struct Branch {
    std::unique_ptr<Block> block;
    HalfNorms norms;
    float scale;
  };
  ParallelHalves(Branch mixer, Branch feed_forward, bool one_norm, std::int64_t dim)
      : mixer_(std::move(mixer)), feed_forward_(std::move(feed_forward)), one_norm_(one_norm), dim_(dim) {}

  void list(ParameterList& list) override;
  void add_blocks(std::vector<Block*>& all) const override;
  void reserve(Arena arena) const override;
  void run(const Step& step) const override;

 private:
  Branch mixer_, feed_forward_;
  bool one_norm_;
  std::int64_t dim_;
};

// Multiplies the residual by a factor when the previous half's output is added.
class ScaleResidual final : public Phase {
 public:
  explicit ScaleResidual(VectorParameter by) : by_(std::move(by)) {}

  void list(ParameterList& list) override { list.add(by_); }
  void run(const Step& step) const override { step.residual.scale(by_.value); }

 private:
  VectorParameter by_;
};

}  // namespace octavo
