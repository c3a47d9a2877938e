// The hub's HTTP interface: what a repository holds, and its files. Blocking; any thread may use one object.
//
// Errors of all functions: `unavailable` when trying again may help; `not_found`, `invalid_argument` and
// `corrupt`, which say what is wrong and what to do, when it does not.
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

// A file as the cache keeps it. Of a large one the etag is its SHA-256.
struct BlobInfo {
  std::string file;
  std::string etag;
  std::uint64_t size = 0;
};

// A response whose body is still to be read.
struct Opened {
  http::Client client;
  http::Response head;
};

// One repository at the hub.
class Hub {
 public:
  // Errors: invalid_argument, field HF_ENDPOINT or HF_TOKEN.
  static Result<Hub> make(const Settings& settings, std::string repo);

  // `backoff` learns what the server says of when to come again.
  Result<Listing> list(const std::string& revision, Backoff& backoff) const;
  Result<BlobInfo> info(const std::string& commit, const std::string& file, Backoff& backoff) const;
  // The bytes from `offset` on, of all when it is 0. The status is 200 (from the start, whatever was asked)
  // or 206 (from the offset on).
  Result<Opened> open(const std::string& commit, const std::string& file, std::uint64_t offset,
                      Backoff& backoff) const;

 private:
  Hub(http::Url endpoint, std::string token, std::string repo)
      : endpoint_(std::move(endpoint)), token_(std::move(token)), repo_(std::move(repo)) {}

  http::Url file_url(const std::string& commit, const std::string& file) const;
  Result<Opened> ask(std::string_view method, const http::Url& url, const http::Headers& headers) const;
  // Follows redirections to wherever they lead; the token stays here.
  Result<Opened> get(http::Url url, const http::Headers& headers) const;
  std::unexpected<Error> refused(std::string_view what, const http::Response& response,
                                 Backoff& backoff) const;

  http::Url endpoint_;
  std::string token_;
  std::string repo_;
};

}  // namespace octavo::hub
