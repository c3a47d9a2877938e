#include "model/quantization_config.h"

#include <algorithm>

namespace octavo {
namespace {

constexpr Config::Range kGroupRange{-1, 1 << 24};

using TextList = std::vector<std::string>;

// Reads a text that must be one of `known`.
Result<std::string> one_of(const Config& config, std::string_view field, std::optional<std::string> fallback,
                           const TextList& known) {
  TRY(const std::string text, config.text(field, std::move(fallback)));
  if (std::ranges::find(known, text) != known.end()) return text;
  const std::string path = "quantization_config." + std::string(field);
  return field_failure(path, ErrorCode::unsupported, "config.json: {} is {}, but only {} is supported", path,
                       text, fmt::join(known, ", "));
}

Result<int> four_or_eight(const Config& config, std::string_view field) {
  TRY(const int bits, config.integer(field, {1, 64}));
  if (bits == 4 || bits == 8) return bits;
  const std::string path = "quantization_config." + std::string(field);
  return field_failure(path, ErrorCode::unsupported, "config.json: {} is {}, but only 4 and 8 are supported",
                       path, bits);
}

Result<std::int64_t> group_size(const Config& config) {
  TRY(const int group, config.integer("group_size", kGroupRange));
  if (group == 0) return invalid("quantization_config.group_size", "config.json: group_size must not be 0");
  return group < 0 ? 0 : group;
}

Result<PackedFormat> gptq(const Config& config) {
  PackedFormat format{.packing = Packing::gptq};
  TRY(format.bits, four_or_eight(config, "bits"));
  TRY(format.group, group_size(config));
  TRY(const std::string version, one_of(config, "checkpoint_format", "gptq", {"gptq", "gptq_v2"}));
  TRY_VOID(one_of(config, "pack_dtype", "int32", {"int32"}));
  format.zero_offset = version == "gptq" ? 1 : 0;
  return format;
}

Result<PackedFormat> awq(const Config& config) {
  PackedFormat format{.packing = Packing::awq};
  TRY(format.bits, config.integer("bits", {4, 4}));
  TRY(format.group, group_size(config));
  TRY_VOID(one_of(config, "version", "gemm", {"gemm", "GEMM"}));
  TRY(const bool zero_point, config.boolean("zero_point", true));
  if (!zero_point)
    return field_failure("quantization_config.zero_point", ErrorCode::unsupported,
                         "config.json: AWQ without zero points is not supported");
  return format;
}

// Reads the size [rows, columns] of the blocks that share a scale.
Result<> read_blocks(const Config& config, std::string_view field, PackedFormat& format) {
  if (!config.has(field)) return {};
  TRY(const std::vector<double> block, config.numbers(field, 2, {1, 1 << 24}));
  format.block_rows = static_cast<std::int64_t>(block[0]);
  format.block_cols = static_cast<std::int64_t>(block[1]);
  return {};
}

// Reads input_activations of a config group with fp8 weights.
Result<ActivationScheme> activation_scheme(const Config& group) {
  TRY(const std::optional<Config> activations, group.object("input_activations"));
  if (!activations) return ActivationScheme::none;
  TRY(const int bits, four_or_eight(*activations, "num_bits"));
  TRY(const std::string type, one_of(*activations, "type", "int", {"int", "float"}));
  if (bits != 8 || type != "float") return ActivationScheme::none;
  TRY(const bool dynamic, activations->boolean("dynamic", false));
  TRY(const std::string strategy, one_of(*activations, "strategy", "tensor", {"tensor", "token", "group"}));
  if (!dynamic) return ActivationScheme::stored;
  return strategy == "group" ? ActivationScheme::block : ActivationScheme::row;
}

Result<PackedFormat> compressed_tensors(const Config& config) {
  PackedFormat format{.packing = Packing::compressed_tensors};
  TRY_VOID(one_of(config, "format", "dense",
                  {"dense", "pack-quantized", "int-quantized", "float-quantized", "naive-quantized",
                   "mixed-precision", "nvfp4-pack-quantized"}));
  TRY(const std::optional<Config> sparsity, config.object("sparsity_config"));
  if (sparsity) TRY_VOID(one_of(*sparsity, "format", "dense", {"dense"}));
  TRY(const std::optional<Config> transform, config.object("transform_config"));
  if (transform && transform->has("config_groups"))
    return field_failure("quantization_config.transform_config", ErrorCode::unsupported,
                         "config.json: transforms of activations are not supported");
  TRY(const std::vector<Config> groups, config.objects("config_groups"));
  for (const Config& group : groups) {
    TRY(const std::optional<Config> weights, group.object("weights"));
    if (!weights) continue;
    TRY(const int bits, four_or_eight(*weights, "num_bits"));
    TRY(const std::string type, one_of(*weights, "type", "int", {"int", "float"}));
    if (bits == 4 && type == "float") {
      TRY_VOID(one_of(*weights, "strategy", std::nullopt, {"tensor_group"}));  // NVFP4
      continue;
    }
    TRY_VOID(one_of(*weights, "strategy", "tensor", {"tensor", "channel", "group", "block"}));
    TRY_VOID(read_blocks(*weights, "block_structure", format));
    if (type == "float") {
      TRY(format.activations, activation_scheme(group));
    }
  }
  return format;
}

Result<PackedFormat> fp8(const Config& config) {
  PackedFormat format{.packing = Packing::fp8};
  TRY_VOID(one_of(config, "fmt", "e4m3", {"e4m3"}));
  TRY_VOID(read_blocks(config, "weight_block_size", format));
  TRY(const std::string scheme, one_of(config, "activation_scheme", "dynamic", {"dynamic", "static"}));
  format.activations = scheme == "static"      ? ActivationScheme::stored
                       : format.block_rows > 0 ? ActivationScheme::block
                                               : ActivationScheme::row;
  return format;
}

Result<PackedFormat> modelopt(const Config& config) {
  TRY(const std::string algorithm, one_of(config, "quant_algo", std::nullopt, {"NVFP4", "FP8"}));
  return PackedFormat{.packing = Packing::modelopt,
                      .activations = algorithm == "FP8" ? ActivationScheme::stored : ActivationScheme::none};
}

}  // namespace

Result<PackedFormat> packed_format(const Config& config) {
  TRY(std::optional<Config> quantization, config.object("quantization_config"));
  if (!quantization) {
    TRY(quantization, config.object("compression_config"));
  }
  if (!quantization) return PackedFormat{};
  TRY(const std::string method, one_of(*quantization, "quant_method", std::nullopt,
                                       {"gptq", "awq", "compressed-tensors", "fp8", "mxfp4", "modelopt"}));
  if (method == name(Packing::gptq)) return gptq(*quantization);
  if (method == name(Packing::awq)) return awq(*quantization);
  if (method == name(Packing::fp8)) {
    TRY(PackedFormat format, fp8(*quantization));
    TRY(const std::string layout, config.text("attention_projection_layout", ""));
    if (layout == "fused_qkv" && format.block_rows > 0) {  // MiMo-V2
      TRY(format.qkv_chunks, config.integer("num_key_value_heads", {1, 4096}));
    }
    return format;
  }
  if (method == name(Packing::mxfp4)) return PackedFormat{.packing = Packing::mxfp4};
  if (method == name(Packing::modelopt)) return modelopt(*quantization);
  return compressed_tensors(*quantization);
}

std::string_view name(Packing packing) {
  constexpr std::string_view kNames[] = {"none", "gptq",  "awq",     "compressed-tensors",
                                         "fp8",  "mxfp4", "modelopt"};
  return kNames[static_cast<int>(packing)];
}

}  // namespace octavo
