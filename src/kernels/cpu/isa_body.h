// The table of one instruction set S, filled from the generic bodies.
#pragma once

#include "kernels/cpu/quant_body.h"
#include "kernels/cpu/row_body.h"
#include "kernels/cpu/softmax_body.h"
#include "kernels/cpu/tile_body.h"

namespace octavo::cpu {
namespace {

template <class S>
struct Tiles {
  using Rows = std::make_index_sequence<S::kTileRows>;
  static constexpr auto f32 = wide_tiles<S, OperandF32<S>>(Rows{});
  static constexpr auto f16 = wide_tiles<S, OperandF16<S>>(Rows{});
  static constexpr auto bf16 = wide_tiles<S, OperandBf16<S>>(Rows{});
  static constexpr auto quant = quant_tiles<S>(std::make_integer_sequence<int, kQuantKinds>{});
};

template <class S>
constexpr IsaKernels kernels_of(const char* name, const TileFunction* dot) {
  return {
      .name = name,
      .lanes = S::kLanes,
      .tile_rows = S::kTileRows,
      .tiles = {Tiles<S>::f32.functions, Tiles<S>::f16.functions, Tiles<S>::bf16.functions, dot},
      .quant_tiles = Tiles<S>::quant.functions,
      .widen = widen<S>,
      .narrow = narrow<S>,
      .widen_packed = widen_packed<S>,
      .add_norm = add_norm<S>,
      .norm_stats = norm_stats<S>,
      .head = head<S>,
      .activate = activate<S>,
      .scale_logits = scale_logits<S>,
      .softmax = softmax<S>,
      .merge = merge<S>,
      .finish = finish<S>,
  };
}

}  // namespace
}  // namespace octavo::cpu
