// Parses JSON from untrusted senders.
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

// Memory for one parsed body: at most a multiple of the body's size, since bodies with a few bytes for each
// value would need much more. Throws bad_alloc above the limit.
class BodyMemory : public boost::container::pmr::memory_resource {
 public:
  // parsed: the limit ends when it becomes true, since later values do not come from the sender.
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

// Maximum depth that Python's json module reads.
inline constexpr std::size_t kBodyDepthMax = 990;

// Parses the text in this memory. Accepts everything that Python's json module accepts, including UTF-16,
// UTF-32, byte order marks, NaN and Infinity (become null), and halves of surrogate pairs (become U+FFFD).
// Errors: invalid JSON, more than kBodyDepthMax levels, more memory than the limit.
Result<boost::json::value> body_json(std::string_view text, boost::json::storage_ptr memory);

}  // namespace octavo::fleet
