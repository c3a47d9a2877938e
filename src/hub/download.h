#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "hub/backoff.h"
#include "hub/cache.h"
#include "hub/origin.h"

namespace octavo::hub {

// Progress and cancellation of one download.
struct Transfer {
  // called with the number of new bytes; negative if received bytes are discarded
  std::function<void(std::int64_t)> count;
  // becomes true if another download fails; this download then stops
  const std::atomic<bool>& given_up;
};

// A file in the cache. For large files, the etag is the SHA-256.
struct BlobInfo {
  std::string file;
  std::string etag;
  std::uint64_t size = 0;
};

// Requests a blob from `offset` on. The response begins at the offset if the status is 206, and at byte 0
// if it is 200.
using Open = std::function<Result<Opened>(std::uint64_t offset, Backoff& backoff)>;

// Returns resource_exhausted if the disk has too little space for the missing bytes.
Result<> check_space(const RepoCache& cache, const std::vector<BlobInfo>& blobs);

// Downloads the blob, or continues an incomplete download. Checks size and SHA-256, and retries a limited
// number of times. A blob gets its final name only when it is complete and correct. Processes that need the
// same blob wait for each other. Returns false if the cache already had the blob.
Result<bool> download(const RepoCache& cache, const BlobInfo& blob, const Open& open,
                      const Transfer& transfer);

}  // namespace octavo::hub
