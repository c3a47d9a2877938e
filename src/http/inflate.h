// Compressed request bodies (Content-Encoding: gzip).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace octavo::http {

enum class Inflated : std::uint8_t {
  whole,
  malformed,  // not gzip or zlib, cut off, or followed by other bytes
  too_large,  // more than `bytes_max`, or more than `grow` allows
};

// Appends what the bytes mean to `out`, a piece at a time: grow(size) is asked before `out` takes more.
Inflated inflate(std::string_view bytes, std::uint64_t bytes_max, std::string& out,
                 const std::function<bool(std::uint64_t size)>& grow);

}  // namespace octavo::http
