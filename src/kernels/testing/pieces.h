// For tests of recurrent operators: steps with pieces of several sequences. Sequence s has the state slot s
// and the rows [s * stride, s * stride + its length) of a tensor with the rows of all sequences.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/operators/states.h"
#include "kernels/testing/backends.h"
#include "kernels/testing/tensors.h"

namespace octavo {

struct Piece {
  std::int32_t slot;
  std::int64_t begin, end;
};

// Calls body(row of the step, row in the tensor of all sequences) for each token.
template <class Body>
void for_rows(const std::vector<Piece>& pieces, std::int64_t stride, Body&& body) {
  std::int64_t row = 0;
  for (const Piece& p : pieces)
    for (std::int64_t t = p.begin; t < p.end; ++t) body(row++, p.slot * stride + t);
}

inline TestTensor rows_of(const TestTensor& all, std::int64_t columns, std::int64_t stride,
                          const std::vector<Piece>& pieces) {
  std::int64_t n = 0;
  for (const Piece& p : pieces) n += p.end - p.begin;
  TestTensor rows(all.dtype(), {n, columns});
  for_rows(pieces, stride, [&](std::int64_t row, std::int64_t from) {
    for (std::int64_t c = 0; c < columns; ++c) rows.set(row * columns + c, all[from * columns + c]);
  });
  return rows;
}

inline void put_rows(const TestTensor& rows, std::int64_t columns, std::int64_t stride,
                     const std::vector<Piece>& pieces, TestTensor& all) {
  for_rows(pieces, stride, [&](std::int64_t row, std::int64_t to) {
    for (std::int64_t c = 0; c < columns; ++c) all.set(to * columns + c, rows[row * columns + c]);
  });
}

// The arrays of a StatePlan. They must exist until the step is computed.
struct PlanArrays {
  PlanArrays(const std::vector<Piece>& pieces, std::vector<std::int32_t> copies_of_tokens)
      : copies(std::move(copies_of_tokens)) {
    for (const Piece& p : pieces) {
      slots.push_back(p.slot);
      for (std::int64_t t = p.begin; t < p.end; ++t) positions.push_back(static_cast<std::int32_t>(t));
      starts.push_back(static_cast<std::int32_t>(positions.size()));
    }
  }
  StatePlan plan(OnDevice& on) {
    return {.slots = on(View::of(std::span(slots))),
            .starts = on(View::of(std::span(starts))),
            .positions = on(View::of(std::span(positions))),
            .copies = copies.empty() ? View() : on(View::of(std::span(copies)))};
  }

  std::vector<std::int32_t> slots, starts{0}, positions, copies;
};

// Calls step(pieces) with random pieces of three sequences, until each has `length` tokens.
template <class Step>
void in_random_pieces(TestRandom& random, std::int64_t length, Step&& step) {
  std::vector<std::int64_t> done(3, 0);
  while (done != std::vector(3, length)) {
    std::vector<Piece> pieces;
    for (std::int32_t s = 2; s >= 0; --s) {
      std::int64_t& at = done[static_cast<std::size_t>(s)];
      const std::int64_t count = std::min<std::int64_t>(random.integer(0, 7), length - at);
      pieces.push_back({s, at, at + count});
      at += count;
    }
    step(pieces);
  }
}

}  // namespace octavo
