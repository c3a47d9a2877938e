// The edge of a request: what runs for it may want more memory than there is.
#pragma once

#include <new>

#include "base/error.h"

namespace octavo {

inline Error out_of_memory() {
  return {ErrorCode::unavailable, "the server has not enough memory for this request", {}};
}

// Runs the work. Memory that is not there is an error (unavailable) of this request, and nobody else's.
template <class Work>
auto within_memory(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return std::unexpected(out_of_memory());
  }
}

}  // namespace octavo
