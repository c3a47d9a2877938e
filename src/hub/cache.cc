#include "hub/cache.h"

#include <unistd.h>

#include <system_error>

#include "hub/files.h"
#include "hub/model_name.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "models--";

std::string folder_name(std::string_view repo) {
  std::string name(kPrefix);
  for (const char c : repo) c == '/' ? name += "--" : name += c;
  return name;
}

}  // namespace

RepoCache::RepoCache(const fs::path& cache_dir, std::string_view repo)
    : repo_(cache_dir / folder_name(repo)), locks_(cache_dir / ".locks" / folder_name(repo)) {}

std::optional<std::string> repo_of_folder(const std::string& folder) {
  if (!folder.starts_with(kPrefix)) return std::nullopt;
  std::string repo = folder.substr(kPrefix.size());
  if (const std::size_t dashes = repo.find("--"); dashes != std::string::npos) repo.replace(dashes, 2, "/");
  if (const auto name = parse_model_name(repo); !name || name->repo != repo) return std::nullopt;
  return repo;
}

std::optional<std::string> RepoCache::commit_of(const std::string& revision) const {
  if (is_commit(revision)) return revision;
  std::string commit = read_word(refs() / revision);
  if (!is_commit(commit)) return std::nullopt;
  return commit;
}

Result<> RepoCache::set_commit_of(const std::string& revision, const std::string& commit) const {
  if (revision == commit || commit_of(revision) == commit) return {};
  return write_whole(refs() / revision, commit);
}

Result<> RepoCache::link(std::string_view commit, const std::string& file, std::string_view etag) const {
  const fs::path pointer = snapshot(commit) / file;
  std::error_code error;
  fs::create_directories(pointer.parent_path(), error);
  const fs::path relative_blob = blob(etag).lexically_relative(pointer.parent_path());
  if (!error && fs::read_symlink(pointer, error) == relative_blob) return {};
  const fs::path made = fmt::format("{}.{}.new", pointer.string(), ::getpid());
  fs::remove(made, error);
  fs::create_symlink(relative_blob, made, error);
  if (!error) fs::rename(made, pointer, error);
  if (error)
    return failure(ErrorCode::io, "cannot create the link {}: {}", pointer.string(), error.message());
  return {};
}

}  // namespace octavo::hub
