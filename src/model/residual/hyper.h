// Hyper-connections: several residual streams (HyperConnections). Each half of a layer reads a mixture of the
// streams, which is the residual for all other parts. The half's output is added to every stream.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "model/residual/half.h"
#include "model/residual/scheme.h"
#include "model/spec.h"

namespace octavo {

struct HyperRows {};   // f32 [tokens, streams * dim]
struct HyperPosts {};  // f32 [tokens, streams]: factors with which the half's output is added to each stream
struct HyperMixes {};  // f32 [tokens, streams * streams]: the matrix that mixes the streams

// Parameters for one mixture.
class HyperWeights {
 public:
  // `begin` is the prefix of the tensor names. `half` is true for a half of a layer, and false at the end,
  // where the streams are merged.
  HyperWeights(const HyperConnections& spec, std::int64_t dim, const Namer& name, const std::string& begin,
               bool half);

  void list(ParameterList& list);
  void reserve(const Arena& arena) const;
  void collapse(const Step& step) const;
  // Adds the half's output to the streams.
  void expand(const Step& step, const View& out) const;

 private:
  View streams(const Step& step) const;  // f32 [tokens, streams, dim]
  View mixes(const Step& step) const;    // HyperMixes; empty if the streams are not mixed

  HyperConnections spec_;
  std::int64_t dim_;
  bool half_;
  VectorParameter matrix_, base_, scale_;
};

class HyperScheme final : public ResidualScheme {
 public:
  // `last` means that this is the last stage, which merges the streams.
  HyperScheme(const HyperConnections& spec, const Namer& top, std::int64_t dim, bool last);

  void list(ParameterList& list) override {
    if (output_) output_->list(list);
  }
  void reserve(Arena arena) const override;
  View handed_on(const Slots& slots) const override { return slots.all<HyperRows>(); }
  void begin(const Step& step) const override;
  void end(const Step& step) const override {
    if (output_) output_->collapse(step);
  }

 private:
  int count_;
  std::optional<HyperWeights> output_;
};

class HyperHalf final : public LayerHalf {
 public:
  HyperHalf(std::unique_ptr<Block> block, HalfNorms norms, HyperWeights weights, std::int64_t dim)
      : LayerHalf(std::move(block), std::move(norms), 1, dim), weights_(std::move(weights)) {}

  void list(ParameterList& list) override;
  void reserve(Arena arena) const override;

 private:
  View enter(const Step& step) const override;
  void leave(const Step& step, const View& out) const override;

  HyperWeights weights_;
};

}  // namespace octavo
