// Parses JSON bodies from untrusted clients, with limits on memory and depth.
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

// Memory for one parsed body. Throws bad_alloc above 1 MiB plus 12 times the body's size. Bodies reach this
// limit if most of their values have only a few bytes.
class BodyMemory : public boost::container::pmr::memory_resource {
 public:
  // Ends the limit when `*parsed` becomes true, because later allocations do not depend on the client.
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

// Maximum depth that Python's json module accepts.
inline constexpr std::size_t kBodyDepthMax = 990;

// Parses the text into `memory`. Accepts everything that Python's json module accepts: also UTF-16, UTF-32,
// byte order marks, NaN and Infinity (parsed as null), and unpaired surrogates (parsed as U+FFFD). Returns
// an error if the text is not valid JSON, is deeper than kBodyDepthMax, or needs more memory than the
// limit.
Result<boost::json::value> body_json(std::string_view text, boost::json::storage_ptr memory);

}  // namespace octavo::fleet
