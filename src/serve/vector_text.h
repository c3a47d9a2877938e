// Writes vectors in the formats of the pooling routes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/openai/pooling_request.h"

namespace octavo {

std::string json_text(std::string_view text);

// Writes a JSON list. Each float is the shortest text that reads back as the same float.
std::string numbers(std::span<const float> vector);

// Returns the bytes of the numbers.
std::string packed(std::span<const float> vector, const openai::VectorFormat& format);

// Returns a JSON string with the base64 of packed().
std::string base64(std::span<const float> vector, const openai::VectorFormat& format = {});

// vectors: several vectors, one after another. Returns a JSON list of lists.
std::string lists(const std::vector<float>& vectors, std::size_t size);

std::string_view name_of(openai::EmbedByTypeRequest::Type type);
std::string vector_text(openai::EmbedByTypeRequest::Type type, const std::vector<float>& vector);

// Returns make(0), make(1), .., make(count - 1), joined by commas.
template <class Make>
std::string joined(std::size_t count, Make&& make) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) all += ',';
    all += make(i);
  }
  return all;
}

}  // namespace octavo
