// Makes the bytes of a safetensors file of f32 vectors, for tests.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace octavo {

inline std::string safetensors_text(const std::vector<std::pair<std::string, std::vector<float>>>& tensors) {
  std::string header = "{";
  std::string data;
  for (const auto& [tensor, values] : tensors) {
    const std::size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    if (header.size() > 1) header += ",";
    header += fmt::format(R"("{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}})", tensor,
                          values.size(), begin, data.size());
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');  // aligns the data
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

}  // namespace octavo
