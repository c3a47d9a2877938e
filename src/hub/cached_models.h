// What is in the cache: `octavo list` and `octavo rm`.
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
  std::string commit;                  // "": no file of any commit is whole yet
  std::vector<std::string> revisions;  // branches and tags that were at the commit when last looked up
  std::uint64_t bytes = 0;
  std::filesystem::file_time_type last_used = std::filesystem::file_time_type::min();
  bool complete = false;  // it can be loaded
};

// All snapshots, by name. What is no model of the hub is passed over.
std::vector<CachedModel> cached_models(const std::filesystem::path& cache_dir);

// Deletes a snapshot, with the blobs that no other one shows; all of the repository when `revision` is "".
// Returns the bytes that are free now. Errors: not_found, field "model"; io.
Result<std::uint64_t> remove_model(const std::filesystem::path& cache_dir, std::string_view repo,
                                   const std::string& revision);

}  // namespace octavo::hub
