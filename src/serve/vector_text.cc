#include "serve/vector_text.h"

#include <fmt/ranges.h>

#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>

#include "base/base64.h"

namespace octavo {
namespace {

using VectorType = openai::EmbedByTypeRequest::Type;

// Returns a JSON list of bytes with one bit for each number: 1 if the number is above 0. The first number is
// the highest bit of the first byte. shift: subtracted from each byte (128: the bytes are signed).
std::string bits(const std::vector<float>& vector, int shift) {
  std::vector<int> bytes((vector.size() + 7) / 8, -shift);
  for (std::size_t i = 0; i < vector.size(); ++i) bytes[i / 8] += vector[i] > 0 ? 128 >> (i % 8) : 0;
  return fmt::format("[{}]", fmt::join(bytes, ","));
}

}  // namespace

std::string json_text(std::string_view text) { return boost::json::serialize(boost::json::string(text)); }

std::string numbers(std::span<const float> vector) { return fmt::format("[{}]", fmt::join(vector, ",")); }

std::string base64(const std::vector<float>& vector) {
  const std::string_view bytes(reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float));
  return '"' + encode_base64(bytes) + '"';
}

std::string lists(const std::vector<float>& vectors, std::size_t size) {
  return fmt::format("[{}]", joined(vectors.size() / size, [&](std::size_t i) {
                       return numbers(std::span(vectors).subspan(i * size, size));
                     }));
}

std::string_view name_of(VectorType type) {
  constexpr std::string_view kNames[] = {"float", "base64", "binary", "ubinary"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string vector_text(VectorType type, const std::vector<float>& vector) {
  switch (type) {
    case VectorType::float32:
      return numbers(vector);
    case VectorType::base64:
      return base64(vector);
    case VectorType::binary:
      return bits(vector, 128);
    case VectorType::ubinary:
      break;
  }
  return bits(vector, 0);
}

}  // namespace octavo
