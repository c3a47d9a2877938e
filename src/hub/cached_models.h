// Lists and removes cached models, for `octavo list` and `octavo rm`.
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
  std::string commit;  // "" if no file is complete yet
  // branches and tags that pointed to the commit at the last download
  std::vector<std::string> revisions;
  std::uint64_t bytes = 0;
  std::filesystem::file_time_type last_used = std::filesystem::file_time_type::min();
  // whether all files that loading needs exist
  bool complete = false;
};

// Returns all snapshots, sorted by name.
std::vector<CachedModel> cached_models(const std::filesystem::path& cache_dir);

// Returns not_found on "model" if the cache lacks the model, or this revision of it ("": any).
Result<> check_cached(const std::filesystem::path& cache_dir, std::string_view repo,
                      const std::string& revision);

// Deletes a snapshot, and the blobs that no other snapshot uses. revision "": deletes the whole repository.
// Returns the number of freed bytes. Returns the error of check_cached(), or io.
Result<std::uint64_t> remove_model(const std::filesystem::path& cache_dir, std::string_view repo,
                                   const std::string& revision);

}  // namespace octavo::hub
