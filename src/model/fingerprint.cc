#include "model/fingerprint.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/sha256.h"
#include "tensor/mapped_file.h"
#include "weights/weight_files.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = std::size_t{16} << 20;
constexpr std::size_t kThreadsMax = 8;          // a thread hashes several GB/s
constexpr std::uintmax_t kBeginning = 1 << 20;  // bytes at the start of a file that are always hashed
constexpr std::uintmax_t kSample = 4 << 10;
constexpr std::uintmax_t kSamples = 256;

void add_text(Sha256& hash, const std::string& text) { hash.add(std::as_bytes(std::span(text))); }

Result<> add_whole(Sha256& hash, const fs::path& path) {
  TRY(const MappedFile file, MappedFile::open(path.string()));
  const std::span<const std::byte> bytes = file.bytes();
  std::vector<Hash128> hashes((bytes.size() + kPiece - 1) / kPiece);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < hashes.size(); i = next++) {
      const auto piece = bytes.subspan(i * kPiece, std::min(kPiece, bytes.size() - i * kPiece));
      hashes[i] = hash_bytes(HashAlgorithm::xxh3_128, piece, 0);
      file.release(piece);
    }
  };
  {
    std::vector<std::jthread> helpers;
    const std::size_t threads =
        std::min<std::size_t>({kThreadsMax, std::thread::hardware_concurrency(), hashes.size()});
    while (helpers.size() + 1 < threads) helpers.emplace_back(work);
    work();
  }
  TRY_VOID(file.intact());
  add_text(hash, fmt::format("{}:", bytes.size()));
  hash.add(std::as_bytes(std::span(hashes)));
  return {};
}

Result<> add_samples(Sha256& hash, const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return failure(ErrorCode::io, "cannot read {}", path.string());
  add_text(hash, fmt::format("{}:", size));
  std::string bytes;
  const auto add = [&](std::uintmax_t at, std::uintmax_t count) {
    bytes.resize(count);
    file.seekg(static_cast<std::streamoff>(at));
    file.read(bytes.data(), static_cast<std::streamsize>(count));
    add_text(hash, bytes);
  };
  add(0, std::min(size, kBeginning));
  if (size > kBeginning)
    for (std::uintmax_t i = 1; i <= kSamples; ++i) add((size - kSample) / kSamples * i, kSample);
  if (!file) return failure(ErrorCode::io, "cannot read {}", path.string());
  return {};
}

// An index is part of the weights: it selects one of several files that contain the same tensor.
bool is_of_weights(const fs::path& path) {
  return path.extension() == ".safetensors" || path.extension() == ".bin" || path.string().ends_with(".index.json");
}

Result<std::string> fingerprint(const std::string& path, const std::string& weights,
                                Result<> (*add)(Sha256& hash, const fs::path& path)) {
  const std::string& tensors = weights.empty() ? path : weights;
  std::vector<fs::path> files;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
      if (entry.path().filename() == "config.json" || entry.path().filename() == "params.json")
        files.push_back(entry.path());
    for (const fs::directory_entry& entry : fs::directory_iterator(tensors, error))
      if (is_of_weights(entry.path())) files.push_back(entry.path());
    if (const auto listed = find_weight_files(tensors))
      for (const std::string& name : listed->names)
        if (name.contains('/')) files.push_back(fs::path(tensors) / name);
  } else {
    files.emplace_back(tensors);
  }
  std::ranges::sort(files, {}, &fs::path::filename);
  Sha256 hash;
  for (const fs::path& file : files) TRY_VOID(add(hash, file));
  return hash.hex().substr(0, 32);
}

}  // namespace

Result<std::string> model_fingerprint(const std::string& path, const std::string& weights) {
  return fingerprint(path, weights, add_whole);
}

Result<std::string> sampled_fingerprint(const std::string& path, const std::string& weights) {
  return fingerprint(path, weights, add_samples);
}

}  // namespace octavo
