// Reads the values of a tensor by name, for tests.
#pragma once

#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "weights/stored_tensor.h"

namespace octavo {

// Returns an empty vector if no tensor has this name.
template <class T>
std::vector<T> values_of(std::span<const StoredTensor> tensors, std::string_view name) {
  std::vector<T> values;
  for (const StoredTensor& t : tensors) {
    if (t.name != name) continue;
    values.resize(t.bytes.size() / sizeof(T));
    std::memcpy(values.data(), t.bytes.data(), t.bytes.size());
  }
  return values;
}

}  // namespace octavo
