#include "serve/openai/prompt_embeds.h"

#include <algorithm>
#include <bit>
#include <boost/json/parse.hpp>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/base64.h"
#include "base/hash.h"

namespace octavo::openai {
namespace {

namespace json = boost::json;

constexpr std::string_view kEmbedsField = "prompt_embeds";
constexpr std::size_t kHeaderBytesMax = std::size_t{64} << 10;
constexpr std::string_view kWhatToSend =
    "send a safetensors file in base64: base64(safetensors.torch.save({\"prompt_embeds\": tensor}))";

template <class... Arguments>
std::unexpected<Error> bad_embeds(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return invalid(kEmbedsField, "{}", fmt::format(format, std::forward<Arguments>(arguments)...));
}

float f32_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

float f16_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return f32_of(0x7f800000U | static_cast<std::uint32_t>(fraction) << 13);
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

float bf16_value(std::uint16_t bits) { return f32_of(std::uint32_t{bits} << 16); }

struct EmbedTensor {
  std::string_view dtype;
  std::size_t rows = 0;
  std::string_view data;
};

// Reads a list of integers >= 0, such as a shape. Returns nullopt for other values.
std::optional<std::vector<std::size_t>> sizes_of(const json::value* list) {
  if (list == nullptr || !list->is_array()) return std::nullopt;
  std::vector<std::size_t> sizes;
  for (const json::value& one : list->get_array()) {
    boost::system::error_code not_size;
    sizes.push_back(one.to_number<std::size_t>(not_size));
    if (not_size) return std::nullopt;
  }
  return sizes;
}

// Returns the header's only tensor. Returns an error if there are several.
Result<const json::object*> only_tensor(const json::value& header) {
  const json::object* tensor = nullptr;
  if (!header.is_object()) return bad_embeds("is not a safetensors file: {}", kWhatToSend);
  for (const auto& [name, value] : header.get_object()) {
    if (name == "__metadata__") continue;
    if (!value.is_object() || tensor != nullptr) return bad_embeds("must have exactly one tensor");
    tensor = &value.get_object();
  }
  if (tensor == nullptr) return bad_embeds("must have exactly one tensor, got none");
  return tensor;
}

Result<EmbedTensor> tensor_of(const json::object& tensor, std::string_view data, const RequestRules& rules) {
  const json::value* dtype = tensor.if_contains("dtype");
  auto shape = sizes_of(tensor.if_contains("shape"));
  const auto range = sizes_of(tensor.if_contains("data_offsets"));
  if (dtype == nullptr || !dtype->is_string() || !shape || !range || range->size() != 2)
    return bad_embeds("is not a safetensors file: {}", kWhatToSend);
  const std::string_view type = dtype->get_string();
  if (type != "F32" && type != "F16" && type != "BF16")
    return bad_embeds("must have the type F32, F16 or BF16, got {}", type.substr(0, 16));
  if (shape->size() == 3 && shape->front() == 1) shape->erase(shape->begin());
  const auto dim = static_cast<std::size_t>(rules.limits.prompt_embeds);
  if (shape->size() != 2 || (*shape)[1] != dim)
    return bad_embeds("must have the shape [tokens, {}], the model's hidden size, got [{}]", dim,
                      fmt::join(*shape, ", "));
  const std::size_t rows = shape->front(), most = static_cast<std::size_t>(rules.max_model_len) - 1;
  if (rows < 1 || rows > most)
    return bad_embeds(
        "has {} rows, but with a context of {} tokens it must have 1 to {}, so that an answer fits", rows,
        rules.max_model_len, most);
  const std::size_t bytes = rows * dim * (type == "F32" ? 4 : 2);
  if (range->front() != 0 || range->back() != bytes || data.size() != bytes)
    return bad_embeds("must have {} bytes of data for {} rows, got {}", bytes, rows, data.size());
  return EmbedTensor{type, rows, data};
}

void widen(const EmbedTensor& tensor, std::span<float> out) {
  if (tensor.dtype == "F32") {
    std::memcpy(out.data(), tensor.data.data(), tensor.data.size());
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, tensor.data.data() + 2 * i, sizeof bits);
    out[i] = tensor.dtype == "F16" ? f16_value(bits) : bf16_value(bits);
  }
}

}  // namespace

Result<MediaPart> read_prompt_embeds(std::string_view base64, const RequestRules& rules) {
  if (rules.limits.prompt_embeds == 0)
    return bad_embeds("is not enabled: start the server with --enable-prompt-embeds");
  auto file = decode_base64(base64);
  if (!file) return bad_embeds("is not base64 ({}): {}", file.error().message, kWhatToSend);
  std::uint64_t header = 0;
  if (file->size() >= sizeof header) std::memcpy(&header, file->data(), sizeof header);
  if (header < 2 || header > kHeaderBytesMax || header > file->size() - sizeof header) {
    // Checked only if the header is invalid, because a valid safetensors header of 128 bytes also begins with
    // 0x80.
    if (file->starts_with("PK\x03\x04") || file->starts_with('\x80'))
      return bad_embeds(
          "is a file of torch.save (pickle), which the server never reads because it can contain code: {}",
          kWhatToSend);
    return bad_embeds("is not a safetensors file: {}", kWhatToSend);
  }
  const std::string_view all(*file);
  boost::system::error_code error;
  const json::value parsed = json::parse(all.substr(sizeof header, header), error);
  if (error) return bad_embeds("is not a safetensors file: {}", kWhatToSend);
  TRY(const json::object* entry, only_tensor(parsed));
  TRY(const EmbedTensor tensor, tensor_of(*entry, all.substr(sizeof header + header), rules));
  std::vector<float> rows(tensor.rows * static_cast<std::size_t>(rules.limits.prompt_embeds));
  widen(tensor, rows);
  if (!std::ranges::all_of(rows, [](float number) { return std::isfinite(number); }))
    return bad_embeds("must contain only finite numbers, got NaN or infinity");
  MediaPart part;
  part.tokens = static_cast<int>(tensor.rows);
  part.embeds = true;
  part.bytes.assign(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(float));
  part.digest = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(part.bytes)), 0);
  return part;
}

}  // namespace octavo::openai
