#include "model/blocks/recurrent.h"

namespace octavo {

View state_part(const View& states, std::int64_t begin, std::initializer_list<std::int64_t> shape) {
  View part = View::of(states.as<float>() + begin, DType::f32, shape);
  for (auto axis = static_cast<std::size_t>(part.rank++); axis > 0; --axis) {
    part.shape[axis] = part.shape[axis - 1];
    part.stride[axis] = part.stride[axis - 1];
  }
  part.shape[0] = states.size(0);
  part.stride[0] = states.stride[0];
  return part;
}

CausalConv::CausalConv(const Namer& name, const std::vector<std::string>& tensors, std::int64_t channels,
                       std::int64_t width, bool bias, std::vector<std::int64_t> sizes)
    : CausalConv(channels, channels, width) {
  if (sizes.empty()) sizes.assign(tensors.size(), channels / std::ssize(tensors));
  std::vector<std::string> weights, biases;
  for (const std::string& tensor : tensors) {
    weights.push_back(tensor + ".weight");
    biases.push_back(tensor + ".bias");
  }
  weight_ = name.vector(weights, sizes);
  weight_.size = channels * width;
  weight_.row = width;
  // Each output channel reads one input channel.
  for (Slot& part : weight_.parts) part.shape = {part.shape[0], 1, width};
  if (bias) bias_ = name.vector(biases, sizes);
}

CausalConv CausalConv::mixtures(const Namer& name, const std::vector<std::string>& tensors,
                                const std::vector<std::int64_t>& shape, std::int64_t dim) {
  std::int64_t each = 1;
  for (const std::int64_t size : shape) each *= size;
  CausalConv conv(dim, each * std::ssize(tensors), 2);
  conv.weight_ = name.vector(tensors, std::vector(tensors.size(), each));
  for (Slot& part : conv.weight_.parts) part.shape = shape;
  conv.weight_.shares = true;
  conv.weight_.row = conv.width_;
  conv.weight_.size = conv.channels_ * conv.width_;
  return conv;
}

void CausalConv::list(ParameterList& list) { list.add(weight_, bias_); }

void CausalConv::scale(std::int64_t begin, std::int64_t count, float factor) {
  if (factor != 1) weight_.factors.push_back({begin * width_, count * width_, factor});
}

void CausalConv::keep(const std::vector<RowRange>& channels) {
  keep_rows(weight_, channels);
  inputs_ = channels_ = weight_.size / width_;
  if (!bias_.parts.empty()) keep_rows(bias_, channels);
}

void CausalConv::run(const Step& step, const Rows& rows) const {
  step.backend.ops.causal_conv(*step.backend.stream,
                               {.x = rows.x,
                                .x_gate = rows.x_gate,
                                .weight = weight_.value,
                                .bias = bias_.value,
                                .silu = rows.silu,
                                .ahead = rows.ahead,
                                .y_gate = rows.y_gate,
                                .state = state_part(step.memory.states, 0, {width_ - 1, inputs_}),
                                .plan = step.memory.state_plan,
                                .y = rows.y});
}

}  // namespace octavo
