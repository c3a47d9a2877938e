#include "model/blocks/block.h"

#include "model/adapter.h"

namespace octavo {

BlockCost linear_cost(const LinearParameter& linear, const Pass& pass) {
  const auto elements = static_cast<double>(linear.weight.elements());
  return {.weights = elements, .operations = 2 * elements * static_cast<double>(pass.tokens)};
}

BlockCost operator+(const BlockCost& a, const BlockCost& b) {
  return {a.weights + b.weights, a.cached + b.cached, a.state + b.state, a.operations + b.operations};
}

namespace {

// Clamps x in place, because only one product reads it.
void clamp(const Step& step, const BoundsParameter& bounds, const View& x) {
  if (!bounds.least.value) return;
  step.backend.ops.clamp(*step.backend.stream,
                         {.x = x, .least = bounds.least.value, .most = bounds.most.value, .y = x});
}

}  // namespace

void linear(const Step& step, const View& x, const LinearParameter& w, const View& y) {
  clamp(step, w.input, x);
  step.backend.ops.matmul(*step.backend.stream,
                          {.x = x, .w = *w.weight.weight, .bias = w.bias.value, .y = y});
  clamp(step, w.output, y);
  if (step.batch.adapters != nullptr)
    add_changes(step.backend, *step.batch.adapters, step.adapter_scratch, x, w.index, y);
}

void gate_heads(const Step& step, const View& x, const LinearParameter& w, const View& gates,
                const View& values, Activation activation) {
  linear(step, x, w, gates);
  const std::int64_t heads = gates.elements(), dim = values.elements() / heads;
  const View rows = View::of(values.data, values.dtype, {heads, dim});
  // combine() without selected experts multiplies each row by its gate.
  step.backend.ops.combine(*step.backend.stream,
                           {.y = View::of(nullptr, values.dtype, {0, dim}),
                            .pair_rows = View::of(nullptr, DType::i32, {heads, 0}),
                            .shared = rows,
                            .shared_gate = View::of(gates.data, gates.dtype, {heads, 1}),
                            .gate_activation = activation,
                            .out = rows});
}

std::string_view name(Activation activation) {
  switch (activation) {
    case Activation::silu:
      return "silu";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::relu:
      return "relu";
    case Activation::relu_squared:
      return "relu squared";
    case Activation::sigmoid:
      return "sigmoid";
    case Activation::softplus:
      return "softplus";
    case Activation::swigluoai:
      return "swigluoai";
    case Activation::tanh:
      return "tanh";
    case Activation::xielu:
      return "xielu";
  }
  return "";
}

}  // namespace octavo
