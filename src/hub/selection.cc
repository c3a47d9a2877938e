#include "hub/selection.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <iterator>
#include <map>

namespace octavo::hub {
namespace {

constexpr std::string_view kGguf = ".gguf";
constexpr std::string_view kSafetensors = ".safetensors";
constexpr std::string_view kTorch = "pytorch_model.bin";
// In order of preference.
constexpr std::array kWeightFiles = {
    WeightFiles{"model", "model.safetensors", "model.safetensors.index.json"},
    WeightFiles{"consolidated", "consolidated.safetensors", "consolidated.safetensors.index.json"},
    WeightFiles{"pytorch_model", kTorch, "pytorch_model.bin.index.json"},
};

bool exists(std::span<const std::string> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Returns true if the name ends with the variant as a separate word, in any case: "qwen3-0.6b-q4_k_m" ends
// with "Q4_K_M".
bool has_variant(std::string_view stem, std::string_view variant) {
  const std::string name = upper(stem);
  if (!name.ends_with(upper(variant))) return false;
  const std::size_t before = name.size() - variant.size();
  return before == 0 || std::isalnum(static_cast<unsigned char>(name[before - 1])) == 0;
}

// Returns true for a file of a Sentence Transformers module, such as "1_Pooling/config.json" or
// "2_Dense/model.safetensors".
bool is_module_file(std::string_view name, std::span<const std::string> names) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos || !is_digits(name.substr(0, name.find('_')))) return false;
  const std::string_view folder = name.substr(0, slash), file = name.substr(slash + 1);
  const std::string_view usual = kWeightFiles.front().single;
  return file == "config.json" || file == usual ||
         (file == kTorch && !exists(names, fmt::format("{}/{}", folder, usual)));
}

// Returns true for the image adapter of Phi-4-multimodal, and for the task adapters of Jina v5.
bool is_own_adapter(std::string_view name) {
  return (name.starts_with("vision-lora/") || name.starts_with("adapters/")) &&
         (name.ends_with("/adapter_config.json") || name.ends_with("/adapter_model.safetensors"));
}

bool is_head(std::string_view name) { return name == "colbert_linear.pt" || name == "sparse_linear.pt"; }

// Returns true for small files in the top folder, except files of other frameworks.
bool is_description(std::string_view name, std::span<const std::string> names) {
  if (name.find('/') != std::string_view::npos)
    return is_module_file(name, names) || is_own_adapter(name) ||
           (name.starts_with("additional_chat_templates/") && name.ends_with(".jinja"));
  if (name.ends_with(".json")) return !name.ends_with(".index.json");
  return name.ends_with(".jinja") || is_head(name) || name == "tokenizer.model" || name == "tokenizer.jsonl" ||
         name == "tiktoken.model" || name == "merges.txt" || name == "vocab.txt";
}

// Returns true for weights: "model.safetensors", "model-00001-of-00002.safetensors", and Medusa heads under
// their authors' names. Copies in other layouts do not count.
bool is_shard_of(const WeightFiles& files, std::string_view name) {
  const std::string_view extension = files.single.substr(files.single.rfind('.'));
  return (name.starts_with(files.stem) || name.starts_with("medusa_lm_head.")) && name.ends_with(extension) &&
         name.find('/') == std::string_view::npos && name != files.single;
}

}  // namespace

const WeightFiles& weight_files(std::span<const std::string> names) {
  const auto* found = std::ranges::find_if(kWeightFiles, [&](const WeightFiles& files) {
    return exists(names, files.single) || exists(names, files.index);
  });
  return found != kWeightFiles.end() ? *found : kWeightFiles.front();
}

Part part_of(std::string_view name) {
  std::string_view stem = name.substr(0, name.rfind('.'));
  const std::size_t of = stem.rfind("-of-");
  if (of == std::string_view::npos) return {std::string(stem)};
  const std::string_view count = stem.substr(of + 4);
  const std::size_t dash = stem.rfind('-', of - 1);
  if (of == 0 || dash == std::string_view::npos || !is_digits(count) ||
      !is_digits(stem.substr(dash + 1, of - dash - 1)))
    return {std::string(stem)};
  Part part{std::string(stem.substr(0, dash))};
  if (std::from_chars(count.data(), count.data() + count.size(), part.of).ec != std::errc{} || part.of == 0)
    return {std::string(stem)};
  return part;
}

bool is_mmproj(std::string_view name) {
  return name.ends_with(kGguf) && upper(name).find("MMPROJ") != std::string::npos;
}

std::string best_mmproj(std::span<const std::string> names) {
  for (const std::string_view format : {"F16", "BF16", "Q8_0"})
    for (const std::string& name : names)
      if (has_variant(part_of(name).stem, format)) return name;
  return std::ranges::min(names);
}

Result<std::vector<std::string>> gguf_parts(std::span<const std::string> names, std::string_view variant) {
  std::map<std::string, std::vector<std::string>> models;  // parts of each model, by name without extension
  for (const std::string& name : names)
    if (name.ends_with(kGguf) && !is_mmproj(name)) models[part_of(name).stem].push_back(name);
  std::vector<std::string> stems, fitting;
  for (const auto& [stem, parts] : models) {
    stems.push_back(stem);
    if (variant.empty() || has_variant(stem, variant)) fitting.push_back(stem);
  }
  if (fitting.size() == 1) {
    std::vector<std::string>& parts = models[fitting.front()];
    std::ranges::sort(parts);
    return parts;
  }
  if (stems.empty())
    return field_failure(
        "model", ErrorCode::not_found, "the model has no weights: {}",
        variant.empty() ? "neither safetensors, pytorch_model.bin nor GGUF files" : "no GGUF files");
  return field_failure("model", ErrorCode::not_found,
                       "{}: add the name after a colon, as in org/name:Q4_K_M. GGUF files: {}",
                       fitting.empty() ? fmt::format("no GGUF file has the name {}", variant)
                                       : "the model has several GGUF files",
                       fmt::join(fitting.empty() ? stems : fitting, ", "));
}

namespace {

Result<std::vector<std::string>> gguf_files(std::span<const std::string> names, std::string_view variant) {
  TRY(std::vector<std::string> files, gguf_parts(names, variant));
  std::vector<std::string> encoders;
  std::ranges::copy_if(names, std::back_inserter(encoders), is_mmproj);
  if (!encoders.empty()) files.insert(files.begin(), best_mmproj(encoders));
  return files;
}

}  // namespace

Result<std::vector<std::string>> files_needed(std::span<const std::string> names, std::string_view variant) {
  std::vector<std::string> weights;
  const WeightFiles& files_of = weight_files(names);
  const bool sharded = exists(names, files_of.index);
  for (const std::string& name : names)
    if (sharded ? is_shard_of(files_of, name) : name == files_of.single) weights.push_back(name);
  if (!variant.empty() || weights.empty()) return gguf_files(names, variant);
  std::vector<std::string> files;
  for (const std::string& name : names)
    if (is_description(name, names)) files.push_back(name);
  if (sharded) files.emplace_back(files_of.index);
  std::ranges::sort(weights);
  std::ranges::move(weights, std::back_inserter(files));
  return files;
}

Result<std::vector<std::string>> adapter_files(std::span<const std::string> names) {
  constexpr std::string_view kConfig = "adapter_config.json", kUsual = "adapter_model.safetensors",
                             kPickled = "adapter_model.bin";
  if (!exists(names, kConfig))
    return field_failure("model", ErrorCode::not_found, "the adapter has no {}", kConfig);
  for (const std::string_view weights : {kUsual, kPickled})
    if (exists(names, weights)) return std::vector{std::string(kConfig), std::string(weights)};
  return field_failure("model", ErrorCode::not_found, "the adapter has neither {} nor {}", kUsual, kPickled);
}

}  // namespace octavo::hub
