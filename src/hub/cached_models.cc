#include "hub/cached_models.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <system_error>
#include <utility>

#include "hub/cache.h"
#include "hub/files.h"
#include "hub/snapshot.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

// Returns each branch and tag with its commit.
std::vector<std::pair<std::string, std::string>> refs_of(const RepoCache& repo) {
  std::vector<std::pair<std::string, std::string>> refs;
  std::error_code ignored;
  for (fs::recursive_directory_iterator at(repo.refs(), ignored), end; at != end; at.increment(ignored))
    if (at->is_regular_file(ignored))
      refs.emplace_back(at->path().lexically_relative(repo.refs()).string(), read_word(at->path()));
  return refs;
}

// Includes subfolders and follows links.
std::set<fs::path> files_below(const fs::path& folder) {
  std::set<fs::path> files;
  std::error_code ignored;
  for (fs::recursive_directory_iterator at(folder, ignored), end; at != end; at.increment(ignored))
    if (at->is_regular_file(ignored)) files.insert(fs::canonical(at->path(), ignored));
  return files;
}

std::uint64_t size_of(const std::set<fs::path>& files) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const fs::path& file : files)
    if (const std::uint64_t size = fs::file_size(file, error); !error) bytes += size;
  return bytes;
}

// Returns the time of the last read or of the download, whichever is later.
fs::file_time_type last_use(const fs::path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return fs::file_time_type::min();
  const auto read = std::chrono::seconds(std::max(info.st_atim.tv_sec, info.st_mtim.tv_sec));
  return std::chrono::file_clock::from_sys(std::chrono::sys_time<std::chrono::seconds>(read));
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored)) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

CachedModel describe(std::string repo, const fs::path& folder) {
  CachedModel model;
  model.repo = std::move(repo);
  const std::set<fs::path> files = files_below(folder);
  model.bytes = size_of(files);
  for (const fs::path& file : files) model.last_used = std::max(model.last_used, last_use(file));
  return model;
}

Result<> delete_all(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return failure(ErrorCode::io, "cannot delete {}: {}", path.string(), error.message());
  return {};
}

}  // namespace

std::vector<CachedModel> cached_models(const fs::path& cache_dir) {
  std::vector<CachedModel> models;
  for (const fs::path& folder : folders_in(cache_dir)) {
    const auto name = repo_of_folder(folder.filename());
    if (!name) continue;
    const RepoCache repo(cache_dir, *name);
    const std::vector<fs::path> snapshots = folders_in(repo.snapshots());
    if (snapshots.empty()) models.push_back(describe(*name, repo.blobs()));
    const auto refs = refs_of(repo);
    for (const fs::path& snapshot : snapshots) {
      CachedModel model = describe(*name, snapshot);
      model.commit = snapshot.filename();
      model.complete = is_complete(snapshot);
      for (const auto& [revision, commit] : refs)
        if (commit == model.commit) model.revisions.push_back(revision);
      models.push_back(std::move(model));
    }
  }
  return models;
}

Result<> check_cached(const fs::path& cache_dir, std::string_view name, const std::string& revision) {
  const RepoCache repo(cache_dir, name);
  std::error_code ignored;
  if (!fs::is_directory(repo.folder(), ignored))
    return field_failure("model", ErrorCode::not_found, "the model {} is not in {}", name,
                         cache_dir.string());
  if (revision.empty()) return {};
  const auto commit = repo.commit_of(revision);
  if (!commit || !fs::is_directory(repo.snapshot(*commit), ignored))
    return field_failure("model", ErrorCode::not_found, "the revision {}@{} is not in {}", name, revision,
                         cache_dir.string());
  return {};
}

Result<std::uint64_t> remove_model(const fs::path& cache_dir, std::string_view name,
                                   const std::string& revision) {
  TRY_VOID(check_cached(cache_dir, name, revision));
  const RepoCache repo(cache_dir, name);
  if (revision.empty()) {
    const std::uint64_t bytes = size_of(files_below(repo.blobs()));
    TRY_VOID(delete_all(repo.folder()));
    TRY_VOID(delete_all(repo.locks()));
    return bytes;
  }
  const auto commit = repo.commit_of(revision);
  std::set<fs::path> blobs = files_below(repo.snapshot(*commit));
  for (const fs::path& snapshot : folders_in(repo.snapshots()))
    if (snapshot != repo.snapshot(*commit))
      for (const fs::path& kept : files_below(snapshot)) blobs.erase(kept);
  const std::uint64_t bytes = size_of(blobs);
  for (const auto& [ref, at] : refs_of(repo))
    if (at == *commit) TRY_VOID(delete_all(repo.refs() / ref));
  TRY_VOID(delete_all(repo.snapshot(*commit)));
  for (const fs::path& blob : blobs) TRY_VOID(delete_all(blob));
  return bytes;
}

}  // namespace octavo::hub
