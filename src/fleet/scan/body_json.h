// JSON of a body from an untrusted sender.
#pragma once

#include <boost/container/pmr/memory_resource.hpp>
#include <boost/json/storage_ptr.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace octavo::fleet {

// Memory for one parsed body, limited to a multiple of its size: a body with a few bytes per value would need
// much more. Throws bad_alloc above the limit.
class BodyMemory : public boost::container::pmr::memory_resource {
 public:
  // parsed: once it is true, the limit is off: later additions are not from the sender.
  explicit BodyMemory(std::size_t body_bytes, std::shared_ptr<const bool> parsed = {})
      : bytes_max_(kBytesAtLeast + kBytesForEach * body_bytes), parsed_(std::move(parsed)) {}

 private:
  static constexpr std::size_t kBytesForEach = 12;
  static constexpr std::size_t kBytesAtLeast = 1 << 20;

  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  const std::size_t bytes_max_;
  const std::shared_ptr<const bool> parsed_;
  std::size_t used_ = 0;
};

// Levels that Python's json module reads.
inline constexpr std::size_t kBodyDepthMax = 990;

// The value that the text is, in this memory. Reads all that Python's json module reads: also a byte order mark,
// NaN and Infinity (as null), halves of surrogate pairs (as U+FFFD). Errors: it is no JSON, or deeper than
// kBodyDepthMax; the memory does not do.
Result<boost::json::value> body_json(std::string_view text, boost::json::storage_ptr memory);

}  // namespace octavo::fleet
