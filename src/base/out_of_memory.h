// Turns bad_alloc into an error of the request that caused it.
#pragma once

#include <new>

#include "base/error.h"

namespace octavo {

inline Error out_of_memory() {
  return {ErrorCode::unavailable,
          "not enough memory for this request; send a smaller request or retry later",
          {}};
}

// If an allocation in `work` fails, returns unavailable, so that other requests continue.
template <class Work>
auto within_memory(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return std::unexpected(out_of_memory());
  }
}

}  // namespace octavo
