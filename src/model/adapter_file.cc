#include "model/adapter_file.h"

#include <cmath>
#include <filesystem>
#include <string_view>

#include "weights/gguf.h"
#include "weights/safetensors.h"
#include "weights/torch_file.h"

namespace octavo {
namespace {

// Like PEFT, the reader takes the first file that exists.
constexpr std::string_view kFiles[] = {"adapter_model.safetensors", "adapter_model.bin"};

Result<StoredAdapter> open_folder(const std::string& directory) {
  TRY(AdapterConfig config, load_adapter_config(directory));
  for (const std::string_view name : kFiles) {
    const std::string path = fmt::format("{}/{}", directory, name);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    TRY(MappedFile file, MappedFile::open(path));
    TRY(std::vector<StoredTensor> tensors, name.ends_with(".bin") ? parse_torch_file(file.bytes(), name)
                                                                  : parse_safetensors(file.bytes(), name));
    return StoredAdapter{std::move(config), std::string(name), std::move(file), std::move(tensors)};
  }
  return failure(ErrorCode::not_found, "{} does not contain {}", directory, fmt::join(kFiles, " or "));
}

Result<> expect(const GgufMetadata& metadata, std::string_view key, std::string_view wanted) {
  TRY(const auto text, metadata.text(key));
  if (text == wanted) return {};
  return field_failure(key, ErrorCode::unsupported, "{}: {} is \"{}\", but must be \"{}\"", metadata.what(),
                       key, text.value_or(""), wanted);
}

// Each matrix A has the rank of its adapter in its shape. An alpha of 0 means that B A is not scaled.
Result<AdapterConfig> gguf_adapter_config(const GgufContents& contents) {
  constexpr std::string_view kAlpha = "adapter.lora.alpha", kEnd = ".weight.lora_a";
  const GgufMetadata& metadata = contents.metadata;
  TRY_VOID(expect(metadata, "general.type", "adapter"));
  TRY_VOID(expect(metadata, "adapter.type", "lora"));
  if (constexpr std::string_view kTokens = "adapter.alora.invocation_tokens"; !metadata.keys(kTokens).empty())
    return field_failure(kTokens, ErrorCode::unsupported, "{}: {} is not supported", metadata.what(),
                         kTokens);
  TRY(const auto alpha, metadata.number(kAlpha));
  if (!std::isfinite(alpha.value_or(0)))
    return field_failure(kAlpha, ErrorCode::corrupt, "{}: {} is {}, but must be finite", metadata.what(),
                         kAlpha, *alpha);
  AdapterConfig config;
  config.alpha.usual = alpha.value_or(0);
  for (const StoredTensor& tensor : contents.tensors) {
    if (!tensor.name.ends_with(kEnd)) continue;
    const std::string module = "^" + tensor.name.substr(0, tensor.name.size() - kEnd.size());
    const auto rank = static_cast<int>(std::min<std::int64_t>(tensor.shape[0], 1 << 16));
    config.rank.patterns.emplace_back(module, rank);
    if (config.alpha.usual == 0) config.alpha.patterns.emplace_back(module, rank);
  }
  return config;
}

Result<StoredAdapter> open_gguf_adapter(const std::string& path) {
  TRY(MappedFile file, MappedFile::open(path));
  TRY(GgufContents contents, parse_gguf(file.bytes(), path));
  TRY(AdapterConfig config, gguf_adapter_config(contents));
  std::ranges::sort(contents.tensors, {}, &StoredTensor::name);
  return StoredAdapter{std::move(config), std::filesystem::path(path).filename(), std::move(file),
                       std::move(contents.tensors)};
}

}  // namespace

Result<StoredAdapter> open_adapter(const std::string& path) {
  return is_gguf(path) ? open_gguf_adapter(path) : open_folder(path);
}

}  // namespace octavo
