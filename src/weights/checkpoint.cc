#include "weights/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/log.h"
#include "weights/encoder_tensors.h"
#include "weights/gguf.h"
#include "weights/safetensors.h"
#include "weights/torch_file.h"
#include "weights/weight_files.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

using Files = std::vector<std::shared_ptr<const MappedFile>>;

struct Opened {
  Files files;
  std::vector<StoredTensor> tensors;
};

// Removes tensors that the index assigns to no file or to another file, because they are not part of the
// model.
void keep_listed(const WeightFiles& files, const std::string& file, std::vector<StoredTensor>& tensors) {
  if (files.file_of.empty()) return;
  const auto unlisted = std::ranges::stable_partition(tensors, [&](const StoredTensor& t) {
    const auto found = files.file_of.find(t.name);
    return found != files.file_of.end() && found->second == file;
  });
  if (unlisted.empty()) return;
  log_warning("{}: {} tensors are ignored, because the index does not list them in this file: {}", file,
              unlisted.size(), unlisted.front().name);
  tensors.erase(unlisted.begin(), unlisted.end());
}

// Checks that no tensor is in several files. If there is an index, checks that each listed tensor exists.
Result<> check_tensors(const WeightFiles& files, std::span<const StoredTensor> tensors) {
  const auto twice = std::ranges::adjacent_find(tensors, {}, &StoredTensor::name);
  if (twice != tensors.end())
    return failure(ErrorCode::corrupt,
                   "tensor {} is in several of the files {}: add an index that names one of them",
                   twice->name, fmt::join(files.names, ", "));
  for (const auto& [tensor, file] : files.file_of)
    if (!std::ranges::binary_search(tensors, tensor, {}, &StoredTensor::name))
      return failure(ErrorCode::corrupt, "the index lists tensor {} in {}, but the file does not contain it",
                     tensor, file);
  return {};
}

Result<Opened> open_weights(const fs::path& directory) {
  TRY(const WeightFiles files, find_weight_files(directory));
  Opened opened;
  for (const std::string& name : files.names) {
    TRY(MappedFile file, MappedFile::open(directory / name));
    TRY(std::vector<StoredTensor> tensors, files.torch ? parse_torch_file(file.bytes(), file.path())
                                                       : parse_safetensors(file.bytes(), file.path()));
    keep_listed(files, name, tensors);
    opened.files.push_back(std::make_shared<const MappedFile>(std::move(file)));
    std::ranges::move(tensors, std::back_inserter(opened.tensors));
  }
  std::ranges::sort(opened.tensors, {}, &StoredTensor::name);
  TRY_VOID(check_tensors(files, opened.tensors));
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
  if (!fs::exists(path, ignored))
    return field_failure("model", ErrorCode::not_found, "{} does not exist", path);
  std::vector<std::string> pointers;
  if (fs::is_regular_file(path, ignored) && is_lfs_pointer(path))
    pointers.push_back(fs::path(path).filename());
  for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored))
    if (entry.is_regular_file(ignored) && is_lfs_pointer(entry.path()))
      pointers.push_back(entry.path().filename());
  if (pointers.empty()) return {};
  std::ranges::sort(pointers);
  return field_failure("model", ErrorCode::corrupt,
                       "{} are git-lfs pointers, not model files: run `git lfs pull` in the folder",
                       fmt::join(pointers, ", "));
}

Result<Checkpoint> Checkpoint::open(const std::string& path, const PackedFormat& packed) {
  TRY_VOID(check_model_path(path));
  if (path.ends_with(".safetensors")) {
    TRY(MappedFile file, MappedFile::open(path));
    Checkpoint checkpoint;
    TRY(checkpoint.tensors_, parse_safetensors(file.bytes(), file.path()));
    std::ranges::sort(checkpoint.tensors_, {}, &StoredTensor::name);
    checkpoint.files_.push_back(std::make_shared<const MappedFile>(std::move(file)));
    return checkpoint;
  }
  if (!is_gguf(path)) return open_directory(path, packed);
  TRY(Gguf gguf, Gguf::open(path));
  Checkpoint checkpoint;
  checkpoint.add(std::move(gguf));
  return checkpoint;
}

void Checkpoint::add(Gguf gguf) {
  // All needed metadata has been read, so its pages can leave the process's memory.
  for (const MappedFile& file : gguf.files) file.release(file.bytes());
  for (MappedFile& file : gguf.files) files_.push_back(std::make_shared<const MappedFile>(std::move(file)));
  add(std::move(gguf.tensors), "");
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
  files_.push_back(std::make_shared<const MappedFile>(std::move(file)));
  add(std::move(tensors), before);
  return {};
}

Result<> Checkpoint::add_encoder(const std::string& path) {
  CHECK(memory_.data() == nullptr, "the checkpoint already has tensors in memory");
  TRY(Gguf gguf, Gguf::open(path));
  TRY(memory_, restore_encoder_tensors(gguf.tensors));
  add(std::move(gguf));
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
  for (const auto& file : files_) TRY_VOID(file->intact());
  return {};
}

std::string Checkpoint::identity() const {
  std::string all;
  for (const auto& file : files_) all += file->identity() + " ";
  return all;
}

std::shared_ptr<const MappedFile> Checkpoint::file_with(const std::byte* bytes) const {
  const auto found = std::ranges::find_if(files_, [&](const auto& file) {
    const auto all = file->bytes();
    return bytes >= all.data() && bytes < all.data() + all.size();
  });
  return found != files_.end() ? *found : nullptr;
}

void Checkpoint::advise(const StoredTensor& tensor,
                        void (MappedFile::*advice)(std::span<const std::byte>) const) const {
  if (tensor.packed) {
    const PackedMatrix& m = *tensor.packed;
    for (const StoredTensor* part : {&m.codes, &m.scales, &m.zeros, &m.group_index}) advise(*part, advice);
    return;
  }
  if (const auto file = file_with(tensor.bytes.data())) ((*file).*advice)(tensor.bytes);
}

void Checkpoint::prefetch(const StoredTensor& tensor) const { advise(tensor, &MappedFile::prefetch); }

void Checkpoint::release(const StoredTensor& tensor) const { advise(tensor, &MappedFile::release); }

}  // namespace octavo
