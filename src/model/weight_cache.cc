#include "model/weight_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "base/size_text.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".octavo-weights";
constexpr std::chrono::hours kUnfinishedHours{24};  // age at which an unfinished file is removed

std::string size_and_time(const fs::path& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return "";
  return fmt::format("{}:{}.{:09}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

// Identifies the file that contains this function: another version of the program may have other layouts.
std::string program_identity() {
  const auto here = reinterpret_cast<std::uintptr_t>(&program_identity);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string rights, offset, device, inode, path;
    std::istringstream(line) >> std::hex >> begin >> dash >> end >> rights >> offset >> device >> inode >>
        path;
    if (begin <= here && here < end) return fmt::format("{}:{}:{}", device, inode, size_and_time(path));
  }
  return "";
}

// Identifies the files beside the weights, also those in subfolders (adapters). Several of them determine
// which matrices the model has.
std::string folder_identity(const std::string& path) {
  std::vector<std::string> files;
  std::error_code failed;
  const auto skip = fs::directory_options::skip_permission_denied;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path, skip, failed))
    if (entry.is_regular_file(failed))
      files.push_back(entry.path().string() + " " + size_and_time(entry.path()));
  std::ranges::sort(files);
  return fmt::format("{}", fmt::join(files, "|"));
}

Hash128 cache_key_of(const std::string& path, const LoadOptions& options, const Checkpoint& checkpoint,
                     const Device& device) {
  // The number of threads, after the comma, does not matter.
  const std::string name = device.name().substr(0, device.name().find(','));
  const Reading& reading = options.reading;
  const std::string text = fmt::format(
      "{}\n{}\n{}\n{}\n{} {} {} {} {} {} {} {} {} {} {}\n{}", program_identity(), name, checkpoint.identity(),
      folder_identity(path), static_cast<int>(options.dtype), static_cast<int>(options.quantization),
      options.max_model_len.value_or(0), static_cast<int>(reading.runner), static_cast<int>(reading.convert),
      reading.pool ? static_cast<int>(*reading.pool) : -1, reading.each_token, options.images, options.videos,
      options.sounds, options.whole_ends, boost::json::serialize(reading.overrides));
  return hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(text)), 0);
}

std::uint64_t matrix_name(const MatrixParameter& matrix) {
  std::string text = fmt::format("{} {} {}", matrix.rows, matrix.cols, matrix.slice);
  for (const Slot& slot : matrix.parts) text += " " + slot.name;
  return hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(std::span(text)), 0).low;
}

// Returns how many bytes of the mapping at this address are mapped in huge pages.
std::size_t huge_bytes(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  bool here = false;
  std::ifstream maps("/proc/self/smaps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream text(line);
    if (text >> std::hex >> begin >> dash >> end && dash == '-') here = begin <= at && at < end;
    constexpr std::string_view kHuge = "FilePmdMapped:";
    if (here && line.starts_with(kHuge))
      return std::strtoull(line.c_str() + kHuge.size(), nullptr, 10) * 1024;
  }
  return 0;
}

struct CachedFile {
  fs::path path;
  fs::file_time_type used;
  std::uintmax_t bytes;
};

// Returns the complete files, the least recently used one first. Removes old unfinished files.
std::vector<CachedFile> cached_files(const std::string& folder) {
  std::vector<CachedFile> files;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const CachedFile file{entry.path(), entry.last_write_time(failed), entry.file_size(failed)};
    if (file.path.extension() == kExtension) files.push_back(file);
    if (file.path.extension() == kUnfinishedWeights &&
        fs::file_time_type::clock::now() - file.used > kUnfinishedHours)
      fs::remove(file.path, failed);
  }
  std::ranges::sort(files, {}, &CachedFile::used);
  return files;
}

// Removes files until all files with a new one of this size need at most half of the disk space that is free
// without them. Returns false if the new one alone needs more.
bool make_room(const std::string& folder, std::uintmax_t bytes) {
  std::error_code failed;
  const std::vector<CachedFile> files = cached_files(folder);
  std::uintmax_t used = 0;
  for (const CachedFile& file : files) used += file.bytes;
  const fs::space_info disk = fs::space(folder, failed);
  const std::uintmax_t most = failed ? 0 : (disk.available + used) / 2;
  if (bytes > most) {
    log_warning("weight cache: {} has no room for {}: the files may use {}", folder, size_text(bytes),
                size_text(most));
    return false;
  }
  for (const CachedFile& file : files) {
    if (used + bytes <= most) break;
    if (fs::remove(file.path, failed)) log_info("weight cache: removed {}", file.path.string());
    used -= file.bytes;
  }
  return true;
}

}  // namespace

WeightCache::WeightCache(const std::string& path, const LoadOptions& options, const Checkpoint& checkpoint,
                         Device& device)
    : folder_(options.weight_cache_dir),
      key_(cache_key_of(path, options, checkpoint, device)),
      path_(fs::path(folder_) / fmt::format("{:016x}{:016x}{}", key_.high, key_.low, kExtension)),
      device_(device) {
  auto converted = ConvertedWeights::open(path_, key_);
  valid_ = converted.has_value();
  if (converted)
    converted_ = *std::move(converted);
  else if (converted.error().code != ErrorCode::not_found)
    log_warning("weight cache: the matrices are converted again: {}", converted.error().message);
}

WeightPtr WeightCache::take(const MatrixParameter& matrix) {
  if (!valid_) return nullptr;
  auto weight = converted_->next(device_, matrix_name(matrix));
  if (weight) return *std::move(weight);
  log_warning("weight cache: {}: {}: the other matrices are converted again", path_, weight.error().message);
  valid_ = false;
  return nullptr;
}

void WeightCache::add(const MatrixParameter& matrix, const Weight& weight) {
  weights_.push_back({.name = matrix_name(matrix), .weight = &weight});
}

void WeightCache::keep(Model& model) {
  model.converted = std::move(converted_);
  if (valid_ && model.converted->at_end()) {
    const std::size_t bytes = model.converted->bytes();
    const void* const inside = memory_of(*weights_[0].weight).pieces[0].data();
    return log_info("weight cache: {} are mapped from {}, {} % in huge pages", size_text(bytes), path_,
                    huge_bytes(inside) * 100 / bytes);
  }
  std::error_code failed;
  if (fs::create_directories(folder_, failed)) fs::permissions(folder_, fs::perms::owner_all, failed);
  if (failed) return log_warning("weight cache: cannot create {}: {}", folder_, failed.message());
  auto writer = std::make_unique<ConvertedWeightsWriter>(path_, key_, weights_);
  if (!make_room(folder_, writer->bytes())) return;
  writer->start();
  model.converted_writer = std::move(writer);
}

}  // namespace octavo
