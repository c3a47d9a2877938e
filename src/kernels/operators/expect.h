// Checks of the shapes and formats of operators' arguments; a failure is a bug of the caller. Contents are
// not checked here, because they may be in device memory. Host backends check indices (host_device.h).
#pragma once

#include <initializer_list>
#include <string_view>

#include "kernels/host_device.h"
#include "kernels/operators/rows.h"
#include "kernels/operators/states.h"

namespace octavo {

inline bool is_activation(DType type) {
  return type == DType::f32 || type == DType::bf16 || type == DType::f16;
}

// Checks that the view has this format, this shape and contiguous rows. If whole_rows is false, only the
// last axis must be contiguous.
inline void expect(std::string_view what, const View& view, DType type,
                   std::initializer_list<std::int64_t> shape, bool whole_rows = true) {
  CHECK(view || view.elements() == 0, "{} is missing", what);
  CHECK(view.dtype == type, "{} is {}, not {}", what, name(view.dtype), name(type));
  CHECK(view.rank == static_cast<int>(shape.size()), "{} has {} dimensions, not {}", what, view.rank,
        shape.size());
  int axis = 0;
  for (const std::int64_t size : shape) {
    CHECK(view.size(axis) == size, "{}: axis {} is {}, not {}", what, axis, view.size(axis), size);
    ++axis;
  }
  CHECK(whole_rows ? rows_contiguous(view) : view.stride[2] == 1, "{} is not contiguous", what);
}

inline void expect_activation(std::string_view what, const View& view,
                              std::initializer_list<std::int64_t> shape) {
  CHECK(is_activation(view.dtype), "{} is {}", what, name(view.dtype));
  expect(what, view, view.dtype, shape);
}

inline void expect_norm(std::string_view what, const Norm& norm, std::initializer_list<std::int64_t> shape) {
  if (norm.kind == NormKind::none) return;
  expect(what, norm.weight, DType::f32, shape);
  if (norm.bias) expect(what, norm.bias, DType::f32, shape);
}

inline void expect_plan(const StatePlan& plan, std::int64_t n) {
  const std::int64_t sequences = plan.slots.size(0);
  expect("state slots", plan.slots, DType::i32, {sequences});
  expect("state starts", plan.starts, DType::i32, {sequences + 1});
  expect("state positions", plan.positions, DType::i32, {n});
  if (plan.copies) expect("state copies", plan.copies, DType::i32, {n});
}

}  // namespace octavo
