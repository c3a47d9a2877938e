// Downloads one file of the hub into the cache.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/error.h"
#include "hub/cache.h"
#include "hub/hub.h"

namespace octavo::hub {

// Progress and cancellation of a download.
struct Transfer {
  std::function<void(std::int64_t)> count;  // number of new bytes; negative if some were wrong
  const std::atomic<bool>& given_up;        // another file has failed: stop
};

// Downloads the blob if it is missing: continues an incomplete download, checks size and SHA-256, and retries
// a limited number of times. A blob gets its name only when it is complete and correct. Processes that need
// the same blob wait for each other. False: it was in the cache.
Result<bool> download(const Hub& hub, const RepoCache& cache, const std::string& commit, const BlobInfo& blob,
                      const Transfer& transfer);

}  // namespace octavo::hub
