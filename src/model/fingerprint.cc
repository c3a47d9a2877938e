#include "model/fingerprint.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/sha256.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kWhole = 1 << 20;  // files up to this size, and as much of larger ones
constexpr std::uintmax_t kSample = 4 << 10;
constexpr std::uintmax_t kSamples = 256;

void add_text(Sha256& hash, const std::string& text) { hash.add(std::as_bytes(std::span(text))); }

Result<> add_file(Sha256& hash, const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return failure(ErrorCode::io, "{} cannot be read", path.string());
  add_text(hash, fmt::format("{}:", size));
  std::string bytes;
  const auto add = [&](std::uintmax_t at, std::uintmax_t count) {
    bytes.resize(count);
    file.seekg(static_cast<std::streamoff>(at));
    file.read(bytes.data(), static_cast<std::streamsize>(count));
    add_text(hash, bytes);
  };
  add(0, std::min(size, kWhole));
  if (size > kWhole)
    for (std::uintmax_t i = 1; i <= kSamples; ++i) add((size - kSample) / kSamples * i, kSample);
  if (!file) return failure(ErrorCode::io, "{} cannot be read", path.string());
  return {};
}

}  // namespace

Result<std::string> model_fingerprint(const std::string& path, const std::string& weights) {
  const std::string& tensors = weights.empty() ? path : weights;
  std::vector<fs::path> files;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
      if (entry.path().filename() == "config.json" || entry.path().filename() == "params.json")
        files.push_back(entry.path());
    for (const fs::directory_entry& entry : fs::directory_iterator(tensors, error))
      if (entry.path().extension() == ".safetensors" || entry.path().extension() == ".bin") files.push_back(entry.path());
  } else {
    files.emplace_back(tensors);
  }
  std::ranges::sort(files, {}, &fs::path::filename);
  Sha256 hash;
  for (const fs::path& file : files) TRY_VOID(add_file(hash, file));
  return hash.hex().substr(0, 32);
}

}  // namespace octavo
