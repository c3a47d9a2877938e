// Fuzzer. Any input must be a safetensors file or an error. The tensors of a file must be inside the input.
#include <array>
#include <cstring>

#include "base/check.h"
#include "fuzz/json_mutator.h"
#include "weights/safetensors.h"

// Mutates the header and the size of the data. In seven of eight cases, the header's length is corrected.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  static const octavo::fuzz::JsonMutator mutator({
      R"({"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
          "b": {"dtype": "BF16", "shape": [4], "data_offsets": [24, 32]}})",
      R"({"w": {"dtype": "I8", "shape": [], "data_offsets": [0, 1]}, "v": {"dtype": "F16", "shape": [0],
          "data_offsets": [1, 1]}, "z": {"dtype": "U8", "shape": [7], "data_offsets": [1, 8]}})",
  });
  std::uint64_t length = 0;
  if (size >= sizeof length) std::memcpy(&length, data, sizeof length);
  const bool sound = size >= sizeof length && length <= size - sizeof length;
  std::string header;
  if (sound) header.assign(reinterpret_cast<const char*>(data) + sizeof length, length);
  header = mutator.mutate(header, seed);
  constexpr std::array<std::size_t, 6> kDataBytes = {0, 1, 8, 24, 32, 33};
  const std::size_t data_bytes = kDataBytes[seed / 8 % kDataBytes.size()];
  if (sizeof length + header.size() + data_bytes > max_size) return size;
  length = header.size();
  if (seed % 8 == 0) LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(&length), sizeof length, sizeof length);
  std::memcpy(data, &length, sizeof length);
  std::memcpy(data + sizeof length, header.data(), header.size());
  std::memset(data + sizeof length + header.size(), 0, data_bytes);
  return sizeof length + header.size() + data_bytes;
}

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
