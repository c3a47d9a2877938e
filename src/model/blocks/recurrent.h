// Shared code of recurrent blocks: the parts of a sequence's state, and the short convolution before most
// of them.
#pragma once

#include <string>

#include "model/blocks/block.h"

namespace octavo {

// The part [slots, shape...] of all states that begins at float `begin` of each.
View state_part(const View& states, std::int64_t begin, std::initializer_list<std::int64_t> shape);

// A causal convolution of each channel (ConvArgs). The block's state begins with the state of the
// convolution.
class CausalConv {
 public:
  // `tensor`.weight [channels, 1, width] and, with `bias`, `tensor`.bias [channels]. Several tensors are
  // stacked; they have equal channels unless `sizes` gives the number of each.
  CausalConv(const Namer& name, const std::vector<std::string>& tensors, std::int64_t channels,
             std::int64_t width, bool bias, std::vector<std::int64_t> sizes = {});
  CausalConv(const Namer& name, const std::string& tensor, std::int64_t channels, std::int64_t width,
             bool bias)
      : CausalConv(name, std::vector{tensor}, channels, width, bias) {}

  // Several of each input: mixture i of x is, in each channel, a share of the token before and the rest of
  // the token itself. The shares of all mixtures, [dim] each, are in `tensors`, one after the other, stored
  // as `shape`.
  static CausalConv mixtures(const Namer& name, const std::vector<std::string>& tensors,
                             const std::vector<std::int64_t>& shape, std::int64_t dim);

  void list(ParameterList& list);
  // Multiplies the input of channels [begin, begin + count) by `factor`.
  void scale(std::int64_t begin, std::int64_t count, float factor);
  // Keeps only these channels.
  void keep(const std::vector<RowRange>& channels);
  std::int64_t state_floats() const { return (width_ - 1) * inputs_; }
  double operations() const { return 2.0 * static_cast<double>(channels_ * width_); }  // a token
  // ConvArgs without weights, state and plan.
  struct Rows {
    View x, x_gate = {};
    bool silu = true;
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
