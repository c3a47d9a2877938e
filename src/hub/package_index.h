// Client of a Python package index (PEP 503) such as PyPI. All calls block, and several threads may use one
// object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "hub/backoff.h"
#include "hub/origin.h"

namespace octavo::hub {

class PackageIndex {
 public:
  // url: pip's index-url. Returns invalid_argument on PIP_INDEX_URL; the message does not contain the
  // password.
  static Result<PackageIndex> make(const std::string& url);

  const std::string& host() const { return origin_.url().host; }

  // Returns the URL of a file. Returns `unavailable` if the index does not respond, not_found, or
  // invalid_argument.
  Result<http::Url> find(std::string_view project, std::string_view file) const;
  // Implements hub::Open for a file of the index.
  Result<Opened> open(const http::Url& file, std::uint64_t offset, Backoff& backoff) const;

 private:
  explicit PackageIndex(Origin origin) : origin_(std::move(origin)) {}
  Origin origin_;
};

// Returns the target of the link to `file` in a project page, without fragment, or nullopt.
std::optional<std::string> link_to(std::string_view page, std::string_view file);

}  // namespace octavo::hub
