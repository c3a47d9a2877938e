#include "weights/pack.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace octavo {
namespace {

constexpr std::int64_t kTogether = 8;

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Packs codes [rows, cols]. A word has eight consecutive codes of a row.
std::vector<std::byte> words_along_columns(std::span<const std::byte> codes) {
  std::vector<std::uint32_t> words(codes.size() / kTogether);
  for (std::size_t i = 0; i < words.size() * kTogether; ++i)
    words[i / kTogether] |= std::to_integer<std::uint32_t>(codes[i]) << 4 * (i % kTogether);
  return bytes_of(words);
}

// Packs zero points [rows, groups]. A word has the zero points of eight consecutive rows in one group.
std::vector<std::byte> words_along_rows(const std::vector<std::uint8_t>& zeros, std::int64_t groups) {
  const std::int64_t rows = std::ssize(zeros) / groups;
  std::vector<std::uint32_t> words(static_cast<std::size_t>((rows + kTogether - 1) / kTogether * groups));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t g = 0; g < groups; ++g)
      words[static_cast<std::size_t>(row / kTogether * groups + g)] |=
          std::uint32_t{zeros[static_cast<std::size_t>(row * groups + g)]} << 4 * (row % kTogether);
  return bytes_of(words);
}

}  // namespace

std::vector<TensorEntry> packed_entries(const std::string& name, std::int64_t rows, std::int64_t cols,
                                        Encoding encoding, PackedLayout layout) {
  const std::int64_t groups = groups_of(encoding, cols);
  const auto entry = [&](const char* end, std::string_view format, std::size_t size,
                         std::vector<std::int64_t> shape) {
    std::size_t bytes = size;
    for (const std::int64_t n : shape) bytes *= static_cast<std::size_t>(n);
    return TensorEntry{name + end, format, std::move(shape), bytes};
  };
  const TensorEntry scales = entry(".weight_scale", "F32", 4, {rows, groups});
  if (layout == PackedLayout::int_quantized) return {entry(".weight", "I8", 1, {rows, cols}), scales};
  const std::int64_t together = encoding == Encoding::int8 ? 4 : kTogether;
  std::vector<TensorEntry> entries{entry(".weight_packed", "I32", 4, {rows, cols / together}), scales,
                                   entry(".weight_shape", "I64", 8, {2})};
  if (encoding == Encoding::int4)
    entries.push_back(entry(".weight_zero_point", "I32", 4, {(rows + kTogether - 1) / kTogether, groups}));
  return entries;
}

std::vector<std::vector<std::byte>> packed_bytes(const QuantizedMatrix& matrix, PackedLayout layout) {
  const MatrixPart& part = matrix.part;
  const auto* first = static_cast<const std::byte*>(matrix.codes.data());
  std::vector<std::byte> codes(first, first + part.rows() * part.cols());
  std::vector<std::byte> scales = bytes_of(matrix.scales);
  if (layout == PackedLayout::int_quantized) {
    for (std::byte& code : codes) code ^= std::byte{0x80};
    return {std::move(codes), std::move(scales)};
  }
  std::vector<std::byte> shape = bytes_of(std::vector{part.rows(), part.cols()});
  if (part.encoding == Encoding::int8) return {std::move(codes), std::move(scales), std::move(shape)};
  return {words_along_columns(codes), std::move(scales), std::move(shape),
          words_along_rows(matrix.zeros, part.scales.size(1))};
}

}  // namespace octavo
