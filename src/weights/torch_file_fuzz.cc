// Fuzzer. Any input must be a torch.save file or an error. The tensors of a file must be inside the input.
// Seeds are in tests/data/torch.
#include "base/check.h"
#include "weights/torch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  const auto tensors = octavo::parse_torch_file(file, "fuzz");
  if (!tensors) return 0;
  for (const octavo::StoredTensor& t : *tensors)
    CHECK(t.bytes.empty() ||
          (t.bytes.data() >= file.data() && t.bytes.data() + t.bytes.size() <= file.data() + size));
  return 0;
}
