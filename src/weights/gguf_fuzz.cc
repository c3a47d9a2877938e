// Fuzzer. Any input must be a GGUF file or an error. The tensors of a file must be inside the input, and
// every value of the metadata must be readable.
#include "base/check.h"
#include "weights/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  const auto contents = octavo::parse_gguf(file, "fuzz");
  if (!contents) return 0;
  std::size_t bytes = 0;
  for (const octavo::StoredTensor& t : contents->tensors) {
    CHECK(t.bytes.data() >= file.data() && t.bytes.data() + t.bytes.size() <= file.data() + size);
    if (t.shape.size() == 2 && t.usable()) CHECK(octavo::matrix_of(t).cols() == t.shape[1]);
    bytes += t.bytes.size();
  }
  CHECK(bytes < size);
  for (const std::string_view key : contents->metadata.keys("")) {
    std::size_t read = 0;
    read += contents->metadata.boolean(key).has_value();
    read += contents->metadata.number(key).has_value();
    read += contents->metadata.text(key).has_value();
    read += contents->metadata.numbers(key).has_value();
    read += contents->metadata.texts(key).has_value();
    CHECK(read <= 2);
  }
  return 0;
}
