// Several residuals side by side, of which layers work on the first (Streams).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/residual/half.h"
#include "model/residual/scheme.h"
#include "model/spec.h"

namespace octavo {

struct StreamRows {};     // f32 [tokens, streams * dim], of which the residual is the first
struct StreamsBefore {};  // f32 [tokens, dim]: the first residual before a layer
struct StreamsRouted {};  // f32 [tokens, streams]: weights of their mixture

class StreamsScheme final : public ResidualScheme {
 public:
  StreamsScheme(const Streams& spec, const Namer& top, std::int64_t dim);

  void list(ParameterList& list) override;
  void reserve(Arena arena) const override;
  Result<> splits(const Shard&) const override { return not_split("several residuals"); }
  bool spans_layers() const override { return true; }
  View residual(const Slots& slots) const override { return slots.all<StreamRows>().columns(0, dim()); }
  // The others become products of the first one, as large as it.
  void begin(const Step& step) const override;
  // The sum of all. The others enter as products, scaled to the size of the first one.
  void end(const Step& step) const override;

 private:
  int count_;
  std::vector<LinearParameter> in_, out_;  // for all except the first
};

// Before a layer: each residual becomes a mixture of all.
class PredictStreams final : public Phase {
 public:
  PredictStreams(const Streams& spec, const Namer& name, std::int64_t dim);

  void list(ParameterList& list) override;
  void reserve(Arena arena) const override;
  void run(const Step& step) const override;

 private:
  friend class CorrectStreams;

  Streams spec_;
  std::int64_t dim_;
  NormParameter norm_;  // the router's input is divided by the width of the network
  MatrixParameter router_;
  VectorParameter predict_, correct_, scale_;
};

// After a layer: adds a share of the layer's change to each residual. The layer's input is computed from
// the first residual, and added to the others.
class CorrectStreams final : public Phase {
 public:
  // before: the phase of the same layer, with the parameters of both; outlives this. input: the layer input,
  // or null.
  CorrectStreams(const PredictStreams& before, std::unique_ptr<Block> input, NormParameter input_norm)
      : before_(before), input_(std::move(input)), input_norm_(std::move(input_norm)) {}

  void list(ParameterList& list) override;
  void add_blocks(std::vector<Block*>& all) const override;
  void reserve(Arena arena) const override;
  void run(const Step& step) const override;

 private:
  const PredictStreams& before_;
  std::unique_ptr<Block> input_;
  NormParameter input_norm_;
};

}  // namespace octavo
