// The projector of an image or audio encoder: converts the encoder's rows to input rows of the language
// model.
#pragma once

#include <string>
#include <vector>

#include "model/ends.h"
#include "model/heads/head_rows.h"
#include "model/spec.h"

namespace octavo {

class ProjectorLayers {
 public:
  // `matrices` and `norm` are tensor names without the prefix.
  ProjectorLayers(const ModelSpec& spec, const Projector& projector, const std::vector<std::string>& matrices,
                  const std::string& norm);

  const Projector& spec() const { return spec_; }
  Norm norm() const { return norm_.norm(); }
  Norm patch_norm() const { return patch_norm_.norm(); }
  void list(ParameterList& list);
  // `rows` is the maximum number of input rows of run().
  void reserve(Scratch scratch, std::int64_t rows, DType activation) const;
  // Shapes: x is act [rows, any], out is f32 [rows, out_dim].
  void run(const Step& step, Scratch scratch, View x, const View& out) const;

 private:
  void add_mlp(const ModelSpec& spec, const Namer& name, const std::vector<std::string>& matrices,
               std::int64_t inputs);
  void add_matrices(const ModelSpec& spec, const Namer& name, const std::vector<std::string>& matrices,
                    std::int64_t inputs);
  void add_words(const ModelSpec& spec, const Namer& name, const std::vector<std::string>& matrices,
                 std::int64_t inputs);
  View run_patches(const Step& step, Scratch& scratch, const View& x) const;
  void run_words(const Step& step, const Scratch& scratch, const View& x, const View& out) const;

  Projector spec_;
  std::int64_t dim_;  // width of the output of merger_
  std::int64_t joined_;
  NormParameter patch_norm_, norm_, hidden_norm_;
  LinearParameter merger_;  // matrix of Projector::merged
  std::vector<LinearParameter> patch_matrices_;  // of Projector::patch_hidden
  std::vector<LinearParameter> matrices_;
};

// The projector after the encoder's last layer.
class ProjectHead final : public NetworkPart {
 public:
  ProjectHead(const ModelSpec& spec, const Ends& ends);

  void list(ParameterList& list) override { projector_.list(list); }
  void reserve(Arena arena) const override;
  // Returns the rows of the squares of patches from `first` on: joined() rows of the step per square, without
  // the row of the class token.
  StepRows rows_of(std::int64_t first, std::int64_t squares) const {
    return {class_rows_ + first * joined_, squares * joined_};
  }
  // Projects the rows that rows_of() returns to `out`, f32 [squares, out_dim]. `starts` is only used by
  // Projector::mean: i32 [squares + 1], the first row of each square, counted from 0.
  void run(const Step& step, const View& starts, const View& out) const;
  // Projects the rows x, act [n, dim * joined()] or, with Projector::mean, act [n, dim].
  void run_rows(const Step& step, const View& x, const View& out) const {
    projector_.run(step, step.scratch, x, out);
  }

 private:
  View joined(const Step& step, Scratch& scratch, std::int64_t count, const View& starts) const;

  const Ends& ends_;
  std::int64_t dim_, joined_, class_rows_;
  ProjectorLayers projector_;
};

// The projector after layer ImageInput::deep_layers[index]. The language model adds the projected rows after
// one of its first layers.
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
