#include "weights/checkpoint.h"

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "weights/gguf.h"
#include "weights/json.h"
#include "weights/safetensors.h"
#include "weights/torch_file.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

// What the weights of a folder are called, in the order in which they are looked for: one file, or shards
// that NAME.index.json lists.
constexpr std::string_view kSafetensors = ".safetensors";
constexpr std::array<std::string_view, 4> kWeights = {
    "model.safetensors",
    "consolidated.safetensors",    // Mistral's
    "medusa_lm_head.safetensors",  // as Medusa's authors call theirs
    "pytorch_model.bin",           // of torch.save
};

constexpr std::size_t kShardsMax = 10'000;
constexpr JsonLimits kIndexLimits{.bytes = kSafetensorsHeaderBytesMax, .depth = 8};

using ShardOfTensor = std::map<std::string, std::string, std::less<>>;

// The weight_map of an index file: tensor name -> file name, which has the extension of what the index is of.
Result<ShardOfTensor> read_index(const std::string& path, std::string_view extension) {
  TRY(const boost::json::value tree, read_json_file(path, kIndexLimits));
  const auto* top = tree.if_object();
  const auto* entry = top != nullptr ? top->if_contains("weight_map") : nullptr;
  const auto* weight_map = entry != nullptr ? entry->if_object() : nullptr;
  if (weight_map == nullptr) return failure(ErrorCode::corrupt, "{}: weight_map must be an object", path);
  ShardOfTensor shard_of;
  for (const auto& [name, file] : *weight_map) {
    const auto* text = file.if_string();
    if (text == nullptr) return failure(ErrorCode::corrupt, "{}: weight_map must hold file names", path);
    const std::string file_name(text->data(), text->size());
    // A file of the same directory and no other.
    if (file_name.contains('/') || file_name.contains('\0') || !file_name.ends_with(extension)) {
      return failure(ErrorCode::corrupt, "{}: \"{}\" is not the name of a shard", path, file_name);
    }
    shard_of.emplace(std::string(name), file_name);
  }
  return shard_of;
}

// Every tensor is in the shard that the index names, and in no other.
Result<> check_shard(const ShardOfTensor& shard_of, std::span<const StoredTensor> tensors,
                     const std::string& file_name) {
  for (const StoredTensor& t : tensors) {
    const auto found = shard_of.find(t.name);
    if (found == shard_of.end()) {
      return failure(ErrorCode::corrupt, "{} holds tensor {}, which the index does not list", file_name,
                     t.name);
    }
    if (found->second != file_name) {
      return failure(ErrorCode::corrupt, "{} holds tensor {}, which the index has in {}", file_name, t.name,
                     found->second);
    }
  }
  return {};
}

fs::path index_of(const fs::path& directory, std::string_view file) {
  return directory / fmt::format("{}.index.json", file);
}

// Which of kWeights the directory has.
std::optional<std::string_view> find_weights(const fs::path& directory) {
  std::error_code ignored;
  for (const std::string_view file : kWeights)
    if (fs::exists(directory / file, ignored) || fs::exists(index_of(directory, file), ignored)) return file;
  return std::nullopt;
}

struct Opened {
  std::vector<MappedFile> files;
  std::vector<StoredTensor> tensors;  // ascending by name
};

Result<Opened> open_weights(const fs::path& directory) {
  const auto single = find_weights(directory);
  if (!single)
    return failure(ErrorCode::not_found, "there is no {} and no {} in {}", kWeights.front(), kWeights.back(),
                   directory.string());
  const bool torch = !single->ends_with(kSafetensors);
  const std::string index = index_of(directory, *single);
  std::error_code ec;
  ShardOfTensor shard_of;
  std::vector<std::string> names;
  if (fs::exists(index, ec)) {
    TRY(shard_of, read_index(index, single->substr(single->rfind('.'))));
    for (const auto& [tensor, file] : shard_of) names.push_back(file);
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    if (names.size() > kShardsMax) {
      return failure(ErrorCode::corrupt, "{}: {} shards, the limit is {}", index, names.size(), kShardsMax);
    }
  } else {
    names.emplace_back(*single);
  }

  Opened opened;
  for (const std::string& name : names) {
    TRY(MappedFile file, MappedFile::open(directory / name));
    TRY(std::vector<StoredTensor> tensors,
        torch ? parse_torch_file(file.bytes(), file.path()) : parse_safetensors(file.bytes(), file.path()));
    if (!shard_of.empty()) TRY_VOID(check_shard(shard_of, tensors, name));
    opened.files.push_back(std::move(file));
    std::ranges::move(tensors, std::back_inserter(opened.tensors));
  }
  std::ranges::sort(opened.tensors, {}, &StoredTensor::name);
  // Each tensor of a shard is one of the index: none is missing where there are as many.
  if (!shard_of.empty() && opened.tensors.size() != shard_of.size()) {
    for (const auto& [tensor, file] : shard_of) {
      if (!std::ranges::binary_search(opened.tensors, tensor, {}, &StoredTensor::name)) {
        return failure(ErrorCode::corrupt, "the index has tensor {} in {}, which does not hold it", tensor,
                       file);
      }
    }
  }
  return opened;
}

bool is_lfs_pointer(const std::filesystem::path& path) {
  constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/";
  std::ifstream file(path, std::ios::binary);
  std::string begin(kBegin.size(), '\0');
  return file.read(begin.data(), std::ssize(begin)) && begin == kBegin;
}

}  // namespace

Result<> check_model_path(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return field_failure("model", ErrorCode::not_found, "there is no {}", path);
  std::vector<std::string> pointers;
  if (fs::is_regular_file(path, ignored) && is_lfs_pointer(path))
    pointers.push_back(fs::path(path).filename());
  for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored))
    if (entry.is_regular_file(ignored) && is_lfs_pointer(entry.path()))
      pointers.push_back(entry.path().filename());
  if (pointers.empty()) return {};
  std::ranges::sort(pointers);
  return field_failure(
      "model", ErrorCode::corrupt,
      "{} are git-lfs pointers and not the files themselves: run `git lfs pull` in the folder",
      fmt::join(pointers, ", "));
}

bool is_consolidated(const std::string& directory) {
  return find_weights(directory) == "consolidated.safetensors";
}

Result<Checkpoint> Checkpoint::open(const std::string& path, const PackedFormat& packed) {
  TRY_VOID(check_model_path(path));
  if (!is_gguf(path)) return open_directory(path, packed);
  TRY(Gguf gguf, Gguf::open(path));
  for (const MappedFile& file : gguf.files) file.release(file.bytes());  // the metadata
  Checkpoint checkpoint;
  checkpoint.files_ = std::move(gguf.files);
  checkpoint.tensors_ = std::move(gguf.tensors);
  return checkpoint;
}

Result<Checkpoint> Checkpoint::open_directory(const std::string& directory, const PackedFormat& packed) {
  TRY(Opened opened, open_weights(directory));
  Checkpoint checkpoint;
  checkpoint.files_ = std::move(opened.files);
  TRY(checkpoint.tensors_, join_packed(std::move(opened.tensors), packed));
  return checkpoint;
}

Result<> Checkpoint::add_folder(const std::string& directory, const std::string& folder) {
  TRY(Opened opened, open_weights(fs::path(directory) / folder));
  std::ranges::move(opened.files, std::back_inserter(files_));
  add(std::move(opened.tensors), folder + '/');
  return {};
}

Result<> Checkpoint::add_torch_file(const std::string& path, const std::string& before) {
  TRY(MappedFile file, MappedFile::open(path));
  TRY(std::vector<StoredTensor> tensors, parse_torch_file(file.bytes(), file.path()));
  files_.push_back(std::move(file));
  add(std::move(tensors), before);
  return {};
}

void Checkpoint::add(std::vector<StoredTensor> tensors, const std::string& before) {
  for (StoredTensor& tensor : tensors) {
    tensor.name.insert(0, before);
    tensors_.push_back(std::move(tensor));
  }
  std::ranges::sort(tensors_, {}, &StoredTensor::name);
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors_, name, {}, &StoredTensor::name);
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

std::size_t Checkpoint::bytes() const {
  std::size_t sum = 0;
  for (const StoredTensor& t : tensors_) sum += stored_bytes(t);
  return sum;
}

Result<> Checkpoint::intact() const {
  for (const MappedFile& file : files_) TRY_VOID(file.intact());
  return {};
}

void Checkpoint::release(const StoredTensor& tensor) const {
  if (tensor.packed) {
    const PackedMatrix& m = *tensor.packed;
    for (const StoredTensor* part : {&m.codes, &m.scales, &m.zeros, &m.group_index}) release(*part);
    return;
  }
  for (const MappedFile& file : files_) {
    const auto all = file.bytes();
    if (tensor.bytes.data() >= all.data() && tensor.bytes.data() < all.data() + all.size()) {
      return file.release(tensor.bytes);
    }
  }
}

}  // namespace octavo
