// Decompresses request bodies (Content-Encoding: gzip, deflate).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace octavo::http {

enum class Inflated : std::uint8_t {
  whole,
  // not gzip or zlib, incomplete, or followed by other bytes
  malformed,
  too_large,  // more than `bytes_max`, or grow() returned false
};

// Appends the decompressed bytes to `out`. Calls grow(size) before `out` gets larger.
Inflated inflate(std::string_view bytes, std::uint64_t bytes_max, std::string& out,
                 const std::function<bool(std::uint64_t size)>& grow);

}  // namespace octavo::http
