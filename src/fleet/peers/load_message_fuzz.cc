// Fuzzer: parses random bytes as a peer's message. The result must be an error, or loads within the limits.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "fleet/peers/load_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace octavo::fleet;
  const auto message = read_load_message({reinterpret_cast<const char*>(data), size});
  if (!message) return 0;
  CHECK(message->workers.size() <= size);
  for (const WorkerLoad& each : message->workers) CHECK(each.load.requests >= 0);
  CHECK(*read_load_message(write_load_message(*message)) == *message);
  return 0;
}
