#include "weights/weight_files.h"

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <charconv>
#include <optional>
#include <string_view>

#include "weights/json.h"
#include "weights/safetensors.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSafetensors = ".safetensors", kBin = ".bin";
// File names in search order.
constexpr std::array<std::string_view, 4> kNames = {
    "model.safetensors",
    "consolidated.safetensors",
    "medusa_lm_head.safetensors",
    "pytorch_model.bin",
};

constexpr std::size_t kShardsMax = 10'000;
constexpr JsonLimits kIndexLimits{.bytes = kSafetensorsHeaderBytesMax, .depth = 8};

fs::path index_of(const fs::path& folder, std::string_view file) {
  return folder / fmt::format("{}.index.json", file);
}

std::optional<std::string_view> usual_name(const fs::path& folder) {
  std::error_code ignored;
  for (const std::string_view file : kNames)
    if (fs::exists(folder / file, ignored) || fs::exists(index_of(folder, file), ignored)) return file;
  return std::nullopt;
}

bool is_inside(std::string_view name) {
  if (name.empty() || name.contains('\0')) return false;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

void sort_names(std::vector<std::string>& names) {
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
}

// Reads the "weight_map" of an index, which maps tensor names to file names. File names must end with
// `extension`.
Result<WeightFiles> read_index(const std::string& path, std::string_view extension) {
  TRY(const boost::json::value tree, read_json_file(path, kIndexLimits));
  const auto* top = tree.if_object();
  const auto* entry = top != nullptr ? top->if_contains("weight_map") : nullptr;
  const auto* weight_map = entry != nullptr ? entry->if_object() : nullptr;
  if (weight_map == nullptr) return failure(ErrorCode::corrupt, "{}: weight_map must be an object", path);
  WeightFiles files{.names = {}, .torch = extension == kBin, .file_of = {}};
  for (const auto& [tensor, file] : *weight_map) {
    const auto* text = file.if_string();
    if (text == nullptr)
      return failure(ErrorCode::corrupt, "{}: weight_map must have file names as values", path);
    std::string name(text->data(), text->size());
    if (!is_inside(name) || !name.ends_with(extension))
      return failure(ErrorCode::corrupt, "{}: \"{}\" is not the name of a shard", path, name);
    files.names.push_back(name);
    files.file_of.emplace(std::string(tensor), std::move(name));
  }
  sort_names(files.names);
  if (files.names.size() > kShardsMax)
    return failure(ErrorCode::corrupt, "{}: the index names {} shards, but the limit is {}", path,
                   files.names.size(), kShardsMax);
  return files;
}

// Parts of a file name NAME-00002-of-00005.EXTENSION: NAME, and the number of shards.
struct ShardName {
  std::string stem;
  std::size_t count = 0;
};

std::optional<ShardName> shard_name(std::string_view name, std::string_view extension) {
  constexpr std::string_view kOf = "-of-";
  if (!name.ends_with(extension)) return std::nullopt;
  name.remove_suffix(extension.size());
  const std::size_t of = name.rfind(kOf), dash = of == std::string_view::npos ? of : name.rfind('-', of - 1);
  if (dash == std::string_view::npos || of == 0) return std::nullopt;
  const auto number = [](std::string_view digits) -> std::optional<std::size_t> {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return value;
  };
  const auto index = number(name.substr(dash + 1, of - dash - 1)), count = number(name.substr(of + kOf.size()));
  if (!index || !count) return std::nullopt;
  return ShardName{std::string(name.substr(0, dash)), *count};
}

Result<> check_shards(const std::vector<std::string>& names, std::string_view extension, const fs::path& folder) {
  std::map<std::pair<std::string, std::size_t>, std::size_t> found;
  for (const std::string& name : names)
    if (const auto shard = shard_name(name, extension)) ++found[{shard->stem, shard->count}];
  for (const auto& [set, count] : found)
    if (count != set.second)
      return failure(ErrorCode::corrupt, "{}: {} of the {} shards of {} are missing", folder.string(),
                     set.second > count ? set.second - count : 0, set.second, set.first);
  return {};
}

// Finds weight files in a folder that has neither an index nor a file of kNames.
Result<WeightFiles> other_names(const fs::path& folder) {
  constexpr std::string_view kAdapter = "adapter_model", kTorchShards = "pytorch_model-";
  WeightFiles safetensors, torch{.names = {}, .torch = true, .file_of = {}};
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file(ignored)) continue;
    if (name.ends_with(kSafetensors) && !name.starts_with(kAdapter)) safetensors.names.push_back(name);
    if (name.starts_with(kTorchShards) && shard_name(name, kBin)) torch.names.push_back(name);
  }
  WeightFiles& files = safetensors.names.empty() ? torch : safetensors;
  if (files.names.empty())
    return failure(ErrorCode::not_found, "{3} contains neither {0}, nor another {1}, nor {2}", kNames.front(),
                   kSafetensors, kNames.back(), folder.string());
  sort_names(files.names);
  TRY_VOID(check_shards(files.names, files.torch ? kBin : kSafetensors, folder));
  return std::move(files);
}

}  // namespace

Result<WeightFiles> find_weight_files(const fs::path& folder) {
  const auto usual = usual_name(folder);
  if (!usual) return other_names(folder);
  const std::string_view extension = usual->ends_with(kSafetensors) ? kSafetensors : kBin;
  const fs::path index = index_of(folder, *usual);
  std::error_code ignored;
  if (fs::exists(index, ignored)) return read_index(index.string(), extension);
  return WeightFiles{.names = {std::string(*usual)}, .torch = extension == kBin, .file_of = {}};
}

bool is_consolidated(const std::string& folder) { return usual_name(folder) == "consolidated.safetensors"; }

}  // namespace octavo
