// The codes of packed matrices as a byte each.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "weights/packed_matrix.h"

namespace octavo {

// codes: [rows, cols], of the matrix's shape, which the packed bytes are known to have.
void unpack_codes(const PackedMatrix& m, std::int64_t rows, std::int64_t cols, std::uint8_t* codes,
                  ThreadPool& pool);

}  // namespace octavo
