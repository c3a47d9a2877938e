// Inputs of language models: tokens, their positions, and image rows that replace some tokens.
#pragma once

#include "model/ends.h"
#include "model/part.h"
#include "model/residual/residual.h"
#include "model/spec.h"

namespace octavo {

struct OwnIds {};  // i32 [tokens]: ids relative to the rank's part of the vocabulary

// Computes the RoPE angles of the step, once for all layers.
class RotaryInput final : public Phase {
 public:
  explicit RotaryInput(const std::vector<RopeSpec>& ropes) : ropes_(ropes) {}

  void reserve(Arena arena) const override;
  void run(const Step& step) const override;

 private:
  std::vector<RopeSpec> ropes_;
};

// Embeds the tokens. Each rank has the embeddings of its part of the vocabulary, and sets the rows of all
// other tokens to 0.
class TokenInput final : public Phase {
 public:
  TokenInput(const ModelSpec& spec, const Namer& top, const Ends& ends);

  void list(ParameterList& list) override;
  void reserve(Arena arena) const override;
  void run(const Step& step) const override;

 private:
  OwnRows own_rows() const { return {first_id_, static_cast<std::int32_t>(ends_.table().rows())}; }
  View own_ids(const Step& step) const;

  const Ends& ends_;
  std::int32_t first_id_;
  bool split_;
  MatrixParameter positions_, types_;
};

// The table of learned positions (EmbeddingSpec::learned_positions), or an empty matrix.
MatrixParameter learned_positions(const ModelSpec& spec, const Namer& top);

class InputNorm final : public Phase {
 public:
  explicit InputNorm(NormParameter norm) : norm_(std::move(norm)) {}

  void list(ParameterList& list) override { list.add(norm_); }
  void run(const Step& step) const override {
    step.residual.put({.delta = step.residual.pending().delta, .norm = norm_.norm(), .replaces = true});
  }

 private:
  NormParameter norm_;
};

// Adds an image's rows of ImageInput::deep_layers after layer `layer`.
class AddDeepRows final : public Phase {
 public:
  AddDeepRows(std::size_t layer, std::int64_t dim) : layer_(layer), dim_(dim) {}

  void run(const Step& step) const override;

 private:
  std::size_t layer_;
  std::int64_t dim_;
};

}  // namespace octavo
