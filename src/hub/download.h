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

// Progress and cancellation of a download.
struct Transfer {
  std::function<void(std::int64_t)> count;  // called with the number of new bytes; negative if received
                                            // bytes are discarded
  const std::atomic<bool>& given_up;  // becomes true if the download of another file fails, and stops this
                                      // download
};

// A file in the cache. The etag of a large file is its SHA-256.
struct BlobInfo {
  std::string file;
  std::string etag;
  std::uint64_t size = 0;
};

// Requests the bytes of a blob, starting at `offset`. With status 206 the response starts at the offset;
// with status 200 it starts at byte 0.
using Open = std::function<Result<Opened>(std::uint64_t offset, Backoff& backoff)>;

// Checks that the disk has space for the missing bytes of the blobs. Errors: resource_exhausted.
Result<> check_space(const RepoCache& cache, const std::vector<BlobInfo>& blobs);

// Downloads the blob if it is missing. Continues an incomplete download, checks size and SHA-256, and
// retries a limited number of times. A blob gets its final name only when it is complete and correct.
// Processes that need the same blob wait for each other. Returns false if the blob was already in the
// cache.
Result<bool> download(const RepoCache& cache, const BlobInfo& blob, const Open& open,
                      const Transfer& transfer);

}  // namespace octavo::hub
