// Pooling heads: compute embeddings, or scores of texts or tokens (Head).
#pragma once

#include <cstddef>
#include <vector>

#include "model/ends.h"
#include "model/heads/head_rows.h"
#include "model/spec.h"

namespace octavo {

struct HeadZeros {};  // f32 [logit rows * outputs]: zeros

// Number of outputs of a head, per text or per token.
int pooled_size(const ModelSpec& spec, std::size_t head = 0);

class PoolHeads final : public NetworkPart {
 public:
  PoolHeads(const ModelSpec& spec, const Ends& ends);

  void list(ParameterList& list) override;
  void reserve(Arena arena) const override;
  // Applies the final norm. Must be called once before run().
  void norm(const Step& step) const { norm_rows(step, ends_.final_norm); }
  // Text i has the tokens [starts[i], starts[i + 1]). Shapes: `starts` is i32 [texts + 1], `out` is f32
  // [texts, pooled_size].
  void run(const Step& step, std::size_t head, const View& starts, const View& out) const;

 private:
  struct Layer {
    HeadLayer spec;
    LinearParameter linear;
    NormParameter norm;
  };
  struct Layers {
    Pool pool;
    std::vector<Layer> layers;
  };
  static View run_layer(const Step& step, const Layer& layer, Scratch& scratch, View x, const View& out);

  const Ends& ends_;
  std::int64_t dim_;
  std::vector<Layers> heads_;
};

}  // namespace octavo
