// Fuzzer: parses random text as a picker's configuration. The result must be a configuration or an error.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "fleet/pick/endpoint_picker_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const bool experimental : {false, true}) {
    const auto config = octavo::fleet::parse_endpoint_picker_config(text, experimental);
    CHECK(config || !config.error().message.empty());
  }
  return 0;
}
