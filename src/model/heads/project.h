// Projector: converts an encoder's rows to input rows of the language model (Projector).
#pragma once

#include <string>
#include <vector>

#include "model/ends.h"
#include "model/heads/head_rows.h"
#include "model/spec.h"

namespace octavo {

class ProjectorLayers {
 public:
  // matrices, norm: tensor names, without the prefix.
  ProjectorLayers(const ModelSpec& spec, const Projector& projector, const std::vector<std::string>& matrices,
                  const std::string& norm);

  const Projector& spec() const { return spec_; }
  Norm norm() const { return norm_.norm(); }
  void list(ParameterList& list);
  // rows: maximum number of input rows of run().
  void reserve(Scratch scratch, std::int64_t rows, DType activation) const;
  // x: act [rows, any]; out: f32 [rows, out_dim]
  void run(const Step& step, Scratch scratch, View x, const View& out) const;

 private:
  Projector spec_;
  std::int64_t dim_;
  NormParameter norm_;
  LinearParameter merger_;  // matrix of Projector::merged
  std::vector<LinearParameter> matrices_;
};

// The projector after the encoder's last layer.
class ProjectHead final : public NetworkPart {
 public:
  ProjectHead(const ModelSpec& spec, const Ends& ends);

  void list(ParameterList& list) override { projector_.list(list); }
  void reserve(Arena arena) const override;
  // Returns the rows of the squares from `first` on: joined() rows of the step per square, without those of
  // the class token. Shape of out: f32 [squares, out_dim]. Only for Projector::mean: i32 [squares + 1], first
  // row of each square, counted from 0.
  StepRows rows_of(std::int64_t first, std::int64_t squares) const {
    return {class_rows_ + first * joined_, squares * joined_};
  }
  // Projects the rows that rows_of() returns.
  void run(const Step& step, const View& starts, const View& out) const;
  // Projects the given rows: act [n, dim * joined()]; with Projector::mean, act [n, dim].
  void run_rows(const Step& step, const View& x, const View& out) const {
    projector_.run(step, step.scratch, x, out);
  }

 private:
  View joined(const Step& step, Scratch& scratch, std::int64_t count, const View& starts) const;

  const Ends& ends_;
  std::int64_t dim_, joined_, class_rows_;
  ProjectorLayers projector_;
};

// Projector after layer ImageInput::deep_layers[index]. The language model adds the projected rows after one
// of its first layers.
class ProjectDeep final : public Phase {
 public:
  ProjectDeep(const ModelSpec& spec, std::size_t index);

  void list(ParameterList& list) override { projector_.list(list); }
  void reserve(Arena arena) const override;
  void run(const Step& step) const override;

 private:
  std::int64_t dim_, square_, class_rows_, first_column_, out_dim_;
  ProjectorLayers projector_;
};

}  // namespace octavo
