// Client of the Hugging Face Hub: lists the files of a repository and downloads them. All calls block, and
// several threads may use one object. Functions return `unavailable` if a retry may help; other errors are
// `not_found`, `invalid_argument` or `corrupt`, with the reason and the remedy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "http/url.h"
#include "hub/backoff.h"
#include "hub/download.h"
#include "hub/origin.h"
#include "hub/settings.h"

namespace octavo::hub {

struct Listing {
  std::string commit;
  std::vector<std::string> files;
};

class Hub {
 public:
  // Returns invalid_argument on HF_ENDPOINT or HF_TOKEN.
  static Result<Hub> make(const Settings& settings, std::string repo);

  // Passes the server's Retry-After to `backoff`.
  Result<Listing> list(const std::string& revision, Backoff& backoff) const;
  Result<BlobInfo> info(const std::string& commit, const std::string& file, Backoff& backoff) const;
  // Implements hub::Open for a file of the repository.
  Result<Opened> open(const std::string& commit, const std::string& file, std::uint64_t offset,
                      Backoff& backoff) const;

 private:
  Hub(Origin origin, std::string repo) : origin_(std::move(origin)), repo_(std::move(repo)) {}

  http::Url file_url(const std::string& commit, const std::string& file) const;
  std::unexpected<Error> refused(std::string_view what, const http::Response& response,
                                 Backoff& backoff) const;

  Origin origin_;
  std::string repo_;
};

}  // namespace octavo::hub
