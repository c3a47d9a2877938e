#pragma once

#include <cstddef>
#include <string>

namespace octavo::http {

inline constexpr std::size_t kKeptCapacity = 1024;  // largest capacity of an empty buffer that is kept

inline void release_if_large(std::string& buffer) {
  if (buffer.empty() && buffer.capacity() > kKeptCapacity) std::string().swap(buffer);
}

}  // namespace octavo::http
