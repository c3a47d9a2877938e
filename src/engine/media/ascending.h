// Arrays of consecutive numbers in the memory of a device.
#pragma once

#include <vector>

#include "kernels/ops.h"

namespace octavo {

// Returns the numbers 0, step, 2 * step .. in the memory of the device. Returns an error if there is not
// enough memory.
template <class T>
Result<Buffer> ascending(std::int64_t count, Backend& backend, T step = 1) {
  std::vector<T> numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<T>(i) * step;
  TRY(Buffer buffer, backend.device->allocate(numbers.size() * sizeof(T)));
  backend.device->upload(*backend.stream, buffer.view(dtype_of<T>, {count}), numbers.data());
  backend.stream->synchronize();  // waits, because the device reads `numbers`
  return buffer;
}

}  // namespace octavo
