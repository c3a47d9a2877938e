// Fills the function table of an instruction set S. S is one of the simd_*.h classes.
#pragma once

#include "kernels/cpu/quant_body.h"
#include "kernels/cpu/quantise_body.h"
#include "kernels/cpu/recurrent_body.h"
#include "kernels/cpu/row_body.h"
#include "kernels/cpu/softmax_body.h"
#include "kernels/cpu/tile_body.h"
#include "kernels/cpu/values_body.h"

namespace octavo::cpu {
namespace {

template <class S>
constexpr auto kQuantTiles = quant_tiles<S>(std::make_integer_sequence<int, kQuantKinds>{});

template <class S>
constexpr IsaKernels kernels_of(const char* name) {
  return {
      .name = name,
      .lanes = S::kLanes,
      .tile_rows = S::kTileRows,
      .tiles = {kWideTiles<S, OperandF32<S>>.functions, kWideTiles<S, OperandF16<S>>.functions,
                kWideTiles<S, OperandBf16<S>>.functions, kWideTiles<S, OperandE4m3<S>>.functions,
                kWideTiles<S, OperandI8<S>>.functions, dot_functions<S, OperandBf16<S>>(),
                dot_functions<S, OperandE4m3<S>>(), dot_functions<S, OperandI8<S>>()},
      .quant_tiles = kQuantTiles<S>.functions,
      .widen = widen<S>,
      .narrow = narrow<S>,
      .widen_packed = widen_packed<S>,
      .unfold = unfold<S>,
      .values_of_keys = values_of_keys,
      .quantise = quantise<S>,
      .add_scaled = add_scaled<S>,
      .add_norm = add_norm<S>,
      .norm_stats = norm_stats<S>,
      .head = head<S>,
      .activate = activate<S>,
      .delta = delta<S>,
      .channel_step = channel_step<S>,
      .wkv = wkv<S>,
      .scale_logits = scale_logits<S>,
      .softmax = softmax<S>,
      .merge = merge<S>,
      .finish = finish<S>,
  };
}

}  // namespace
}  // namespace octavo::cpu
