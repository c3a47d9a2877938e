// What a layer makes of the vector that it gets of each token beside the residual: projection(gate(x) *
// vector).
#include "model/blocks/block.h"

namespace octavo {
namespace {

class LayerInputBlock final : public Block {
 public:
  LayerInputBlock(const LayerInputs& spec, const Namer& name, std::int64_t dim)
      : spec_(spec),
        gate_(name.linear({name.names.layer_input_gate}, {spec.size}, dim, false)),
        out_(name.linear({name.names.layer_input_out}, {dim}, spec.size, false)) {}

  void list(ParameterList& list) override {
    list.add(gate_);
    list.add(out_);
  }

  std::int64_t scratch_bytes(std::int64_t tokens, DType activation) const override {
    Scratch scratch;
    scratch.take(activation, {tokens, spec_.size});
    return scratch.bytes();
  }

  BlockCost cost(const Pass& pass) const override {
    return linear_cost(gate_, pass) + linear_cost(out_, pass);
  }

  std::string text() const override { return fmt::format("input of {}", spec_.size); }

  void run(const StepContext& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const View gate = scratch.take(x.dtype, {step.tokens, spec_.size});
    linear(step, x, gate_, gate);
    step.backend.ops.gate(*step.backend.stream,
                          {.x = step.layer_input, .gate = gate, .activation = spec_.activation, .y = gate});
    linear(step, gate, out_, out);
  }

 private:
  LayerInputs spec_;
  LinearParameter gate_, out_;
};

}  // namespace

std::unique_ptr<Block> make_block(const LayerInputs& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<LayerInputBlock>(spec, name, dim);
}

}  // namespace octavo
