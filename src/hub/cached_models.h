// Lists and removes models of the cache: `octavo list` and `octavo rm`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo::hub {

struct CachedModel {
  std::string repo;
  std::string commit;                  // "" if no commit has a complete file yet
  std::vector<std::string> revisions;  // branches and tags that pointed to this commit at the last download
  std::uint64_t bytes = 0;
  std::filesystem::file_time_type last_used = std::filesystem::file_time_type::min();
  bool complete = false;  // all files for loading the model exist
};

// Returns all snapshots, sorted by name. Skips folders that are not a model of the hub.
std::vector<CachedModel> cached_models(const std::filesystem::path& cache_dir);

// Deletes a snapshot and the blobs that no other snapshot uses. If `revision` is "", it deletes the whole
// repository. Returns the number of freed bytes. Errors: not_found (field "model"), or io.
Result<std::uint64_t> remove_model(const std::filesystem::path& cache_dir, std::string_view repo,
                                   const std::string& revision);

}  // namespace octavo::hub
