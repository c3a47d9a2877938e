// Adds projection(gate(x) * v) to the residual after a layer. v is the token's embedding for this layer
// (Gemma 3n's per-layer embeddings).
#include "model/blocks/block.h"
#include "model/inputs/layer_inputs.h"

namespace octavo {
namespace {

class LayerInputBlock final : public Block {
 public:
  LayerInputBlock(const LayerInputs& spec, std::int64_t layer, const Namer& name, std::int64_t dim)
      : spec_(spec),
        first_column_(layer * spec.size),
        gate_(name.linear({name.names.of<LayerInputs>().gate}, {spec.size}, dim, false)),
        out_(name.linear({name.names.of<LayerInputs>().out}, {dim}, spec.size, false)) {}

  void list(ParameterList& list) override { list.add(gate_, out_); }

  void reserve(Arena arena) const override {
    arena.scratch.take(arena.activation, {arena.tokens, spec_.size});
  }

  BlockCost cost(const Pass& pass) const override {
    return linear_cost(gate_, pass) + linear_cost(out_, pass);
  }

  std::string text() const override { return fmt::format("input of {}", spec_.size); }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const View gate = scratch.take(x.dtype, {step.tokens(), spec_.size});
    linear(step, x, gate_, gate);
    step.backend.ops.gate(*step.backend.stream,
                          {.x = step.slot<LayerInputRows>().columns(first_column_, spec_.size),
                           .gate = gate,
                           .activation = spec_.activation,
                           .y = gate});
    linear(step, gate, out_, out);
  }

 private:
  LayerInputs spec_;
  std::int64_t first_column_;  // first column of this layer in LayerInputRows
  LinearParameter gate_, out_;
};

}  // namespace

std::unique_ptr<Block> make_layer_input(const LayerInputs& spec, std::int64_t layer, const Namer& name,
                                        std::int64_t dim) {
  return std::make_unique<LayerInputBlock>(spec, layer, name, dim);
}

LayerInputs::Names LayerInputs::Names::of_gguf(const GgufLayers&) {
  return {
      .table = "per_layer_token_embd",
      .projection = "per_layer_model_proj",
      .norm = "per_layer_proj_norm",
      .gate = "inp_gate",
      .out = "proj",
      .post_norm = "post_norm",
  };
}

}  // namespace octavo
