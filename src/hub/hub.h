// The hub's HTTP API: a repository's file list, and its files. Blocking; one object may be used by any
// thread.
//
// Errors of all functions: `unavailable` if a retry may help; otherwise `not_found`, `invalid_argument` or
// `corrupt`, with the reason and the remedy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "http/client.h"
#include "http/url.h"
#include "hub/backoff.h"
#include "hub/settings.h"

namespace octavo::hub {

// The files of a repository at a commit.
struct Listing {
  std::string commit;
  std::vector<std::string> files;
};

// A file in the cache. The etag of a large one is its SHA-256.
struct BlobInfo {
  std::string file;
  std::string etag;
  std::uint64_t size = 0;
};

// A response whose body was not read yet.
struct Opened {
  http::Client client;
  http::Response head;
};

// One repository on the hub.
class Hub {
 public:
  // Errors: invalid_argument, field HF_ENDPOINT or HF_TOKEN.
  static Result<Hub> make(const Settings& settings, std::string repo);

  // `backoff` receives the server's Retry-After.
  Result<Listing> list(const std::string& revision, Backoff& backoff) const;
  Result<BlobInfo> info(const std::string& commit, const std::string& file, Backoff& backoff) const;
  // Requests the bytes from `offset` on. The status is 200 (from the start, even if another offset was
  // requested) or 206 (from the offset).
  Result<Opened> open(const std::string& commit, const std::string& file, std::uint64_t offset,
                      Backoff& backoff) const;

 private:
  Hub(http::Url endpoint, std::string token, std::string repo)
      : endpoint_(std::move(endpoint)), token_(std::move(token)), repo_(std::move(repo)) {}

  http::Url file_url(const std::string& commit, const std::string& file) const;
  Result<Opened> ask(std::string_view method, const http::Url& url, const http::Headers& headers) const;
  // Follows redirections to any host, but sends the token only to the hub.
  Result<Opened> get(http::Url url, const http::Headers& headers) const;
  std::unexpected<Error> refused(std::string_view what, const http::Response& response,
                                 Backoff& backoff) const;

  http::Url endpoint_;
  std::string token_;
  std::string repo_;
};

}  // namespace octavo::hub
