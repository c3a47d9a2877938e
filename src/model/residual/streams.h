// AltUp: several residual streams, of which layers read and change the first one (Streams).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/residual/half.h"
#include "model/residual/scheme.h"
#include "model/spec.h"

namespace octavo {

struct StreamRows {};     // f32 [tokens, streams * dim]; the first stream is the residual
struct StreamsBefore {};  // f32 [tokens, dim]: the first stream before a layer
struct StreamsRouted {};  // f32 [tokens, streams]: weights for the mixture

class StreamsScheme final : public ResidualScheme {
 public:
  StreamsScheme(const Streams& spec, const Namer& top, std::int64_t dim);

  void list(ParameterList& list) override;
  void reserve(Arena arena) const override;
  Result<> splits(const Shard&) const override { return not_split("several residuals"); }
  bool spans_layers() const override { return true; }
  View residual(const Slots& slots) const override { return slots.all<StreamRows>().columns(0, dim()); }
  // Sets the other streams to products of the first one, scaled to its magnitude.
  void begin(const Step& step) const override;
  // Adds products of the other streams to the first one, scaled to its magnitude.
  void end(const Step& step) const override;

 private:
  int count_;
  std::vector<LinearParameter> in_, out_;  // one product per stream except the first
};

// Runs before a layer: each stream becomes a mixture of all streams.
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
  NormParameter norm_;  // norm of the router's input, divided by the network's width
  MatrixParameter router_;
  VectorParameter predict_, correct_, scale_;
};

// Runs after a layer: adds a fraction of the layer's change to each stream. The layer input, if any, is
// computed from the first stream and added to the others.
class CorrectStreams final : public Phase {
 public:
  // `before` belongs to the same layer. It has the parameters of both phases, and must outlive this object.
  // `input` is the layer input, or null.
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
