// Reads safetensors files: an 8-byte little-endian length, a JSON header of that length, and the data.
// The header maps each tensor's name to {"dtype", "shape", "data_offsets": [begin, end)}. Offsets count
// from the end of the header. The reader is strict: tensors must cover the data without gaps and overlaps,
// byte counts must match dtype and shape, names must not repeat, and only spaces may pad the header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "weights/stored_tensor.h"

namespace octavo {

inline constexpr std::uint64_t kSafetensorsHeaderBytesMax = 100'000'000;
inline constexpr std::size_t kSafetensorsTensorsMax = 1'000'000;
inline constexpr std::size_t kSafetensorsRankMax = 8;

// Parses the header. `file` is the whole file, and the tensors' bytes point into it. The result is ordered by
// name. Errors: corrupt; their messages begin with `what`, the name of the file.
Result<std::vector<StoredTensor>> parse_safetensors(std::span<const std::byte> file, std::string_view what);

}  // namespace octavo
