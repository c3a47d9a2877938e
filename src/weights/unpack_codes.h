// Unpacks the codes of a packed matrix to one byte each.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "weights/packed_matrix.h"

namespace octavo {

// Writes [rows, cols] bytes to `codes`. The caller must have checked that the packed bytes match this shape.
void unpack_codes(const PackedMatrix& m, std::int64_t rows, std::int64_t cols, std::uint8_t* codes,
                  ThreadPool& pool);

}  // namespace octavo
