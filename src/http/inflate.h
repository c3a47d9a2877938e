// Decompresses request bodies (Content-Encoding: gzip).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace octavo::http {

enum class Inflated : std::uint8_t {
  whole,
  malformed,  // not gzip or zlib, incomplete, or followed by other bytes
  too_large,  // more than `bytes_max`, or grow() returned false
};

// Appends the decompressed bytes to `out` in pieces. Calls grow(size) before `out` grows.
Inflated inflate(std::string_view bytes, std::uint64_t bytes_max, std::string& out,
                 const std::function<bool(std::uint64_t size)>& grow);

}  // namespace octavo::http
