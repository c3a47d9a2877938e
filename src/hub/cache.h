// The cache of downloaded models, in the layout of Python's huggingface_hub, which can use the same folder:
//
// models--org--name/refs/main                    the branch's last known commit
// models--org--name/snapshots/COMMIT/config.json -> ../../blobs/ETAG
// models--org--name/blobs/ETAG                   the file's content, shared by all snapshots
// .locks/models--org--name/ETAG.lock             locked by the process that downloads the blob
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::hub {

class RepoCache {
 public:
  RepoCache(const std::filesystem::path& cache_dir, std::string_view repo);

  const std::filesystem::path& folder() const { return repo_; }
  const std::filesystem::path& locks() const { return locks_; }
  std::filesystem::path snapshots() const { return repo_ / "snapshots"; }
  std::filesystem::path blobs() const { return repo_ / "blobs"; }
  std::filesystem::path refs() const { return repo_ / "refs"; }
  std::filesystem::path blob(std::string_view etag) const { return blobs() / etag; }
  std::filesystem::path lock(std::string_view etag) const { return locks_ / (std::string(etag) + ".lock"); }
  std::filesystem::path snapshot(std::string_view commit) const { return snapshots() / commit; }

  // Returns the last known commit of a branch or tag, or nullopt. A commit is returned unchanged.
  std::optional<std::string> commit_of(const std::string& revision) const;
  Result<> set_commit_of(const std::string& revision, const std::string& commit) const;

  // Creates the symbolic link `file` to the blob in the snapshot.
  Result<> link(std::string_view commit, const std::string& file, std::string_view etag) const;

 private:
  std::filesystem::path repo_;
  std::filesystem::path locks_;
};

// Returns "org/name" for the folder "models--org--name", or nullopt for other folders.
std::optional<std::string> repo_of_folder(const std::string& folder);

}  // namespace octavo::hub
