// Code that recurrent blocks share: access to a sequence's state, and the short convolution that most of them
// begin with.
#pragma once

#include <string>

#include "model/blocks/block.h"

namespace octavo {

// Returns a part of every state as a view [slots, shape...]. The part begins at float `begin` of a state.
View state_part(const View& states, std::int64_t begin, std::initializer_list<std::int64_t> shape);

// A causal convolution of each channel (ConvArgs). Its state is at the beginning of the block's state.
class CausalConv {
 public:
  // The tensors are `tensor`.weight [channels, 1, width] and, with `bias`, `tensor`.bias [channels]. Several
  // tensors are stacked. `sizes` has the number of channels of each tensor; if it is empty, all have the same
  // number.
  CausalConv(const Namer& name, const std::vector<std::string>& tensors, std::int64_t channels,
             std::int64_t width, bool bias, std::vector<std::int64_t> sizes = {});
  CausalConv(const Namer& name, const std::string& tensor, std::int64_t channels, std::int64_t width,
             bool bias)
      : CausalConv(name, std::vector{tensor}, channels, width, bias) {}

  // Makes a convolution that computes several mixtures of the input. A mixture is a weighted mean of the
  // previous token and the current token, with separate weights for each channel. `tensors` contain the
  // previous token's weights for all mixtures, [dim] each, one after another. Each tensor has the shape
  // `shape`.
  static CausalConv mixtures(const Namer& name, const std::vector<std::string>& tensors,
                             const std::vector<std::int64_t>& shape, std::int64_t dim);

  void list(ParameterList& list);
  void scale(std::int64_t begin, std::int64_t count, float factor);
  // Keeps only a rank's channels.
  void keep(const std::vector<RowRange>& channels);
  std::int64_t state_floats() const { return (width_ - 1) * inputs_; }
  // Number of operations per token.
  double operations() const { return 2.0 * static_cast<double>(channels_ * width_); }
  // ConvArgs without weights, state and plan.
  struct Rows {
    View x, x_gate = {};
    bool silu = true;
    int ahead = 0;
    View y_gate = {}, y;
  };
  void run(const Step& step, const Rows& rows) const;

 private:
  CausalConv(std::int64_t inputs, std::int64_t channels, std::int64_t width)
      : inputs_(inputs), channels_(channels), width_(width) {}

  std::int64_t inputs_, channels_, width_;
  VectorParameter weight_, bias_;
};

}  // namespace octavo
