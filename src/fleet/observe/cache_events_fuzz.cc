// Fuzzer: parses random bytes as cache events. The result must be an error, or fewer events than bytes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "fleet/observe/cache_events.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view batch(reinterpret_cast<const char*>(data), size);
  const auto read = octavo::fleet::read_cache_batch(batch);
  if (!read) return 0;
  CHECK(read->events.size() <= size);
  for (const auto& event : read->events) {
    CHECK(event.tokens.size() <= size);
    CHECK(event.blocks.size() <= size);
  }
  return 0;
}
