// One file of the hub into the cache.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/error.h"
#include "hub/cache.h"
#include "hub/hub.h"

namespace octavo::hub {

// What a download tells and hears while it runs.
struct Transfer {
  std::function<void(std::int64_t)> count;  // so many bytes more; fewer when some turn out to be wrong
  const std::atomic<bool>& given_up;        // another file has failed: stop
};

// Gets the blob, unless it is there: resumes what an earlier try has left, checks size and SHA-256, tries
// again a bounded number of times. A blob has its name only when it is whole and right. Processes that want
// the same blob wait for each other. False: it was there already.
Result<bool> download(const Hub& hub, const RepoCache& cache, const std::string& commit, const BlobInfo& blob,
                      const Transfer& transfer);

}  // namespace octavo::hub
