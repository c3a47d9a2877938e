// Any bytes are a safetensors file or an error; what is accepted lies inside the input.
#include "base/check.h"
#include "weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  const auto tensors = octavo::parse_safetensors(file, "fuzz");
  if (!tensors) return 0;
  std::size_t bytes = 0;
  for (const octavo::StoredTensor& t : *tensors) {
    CHECK(t.bytes.empty() ||
          (t.bytes.data() >= file.data() && t.bytes.data() + t.bytes.size() <= file.data() + size));
    bytes += t.bytes.size();
  }
  CHECK(bytes < size);
  return 0;
}
