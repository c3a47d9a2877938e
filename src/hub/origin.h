// HTTP requests to one server (origin). Credentials are sent only to this server, not after redirections to
// others. All calls block, and several threads may use one object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "http/client.h"
#include "http/url.h"
#include "hub/backoff.h"

namespace octavo::hub {

constexpr int kRedirectsMax = 10;
bool is_redirect(int status);

// A response whose body has not been read.
struct Opened {
  http::Client client;
  http::Response head;
  http::Url url;  // URL after redirections
};

class Origin {
 public:
  // authorization: value of the Authorization header; "": no header.
  Origin(http::Url url, std::string authorization)
      : url_(std::move(url)), authorization_(std::move(authorization)) {}

  const http::Url& url() const { return url_; }
  bool anonymous() const { return authorization_.empty(); }

  // Returns `unavailable` if the server does not respond.
  Result<Opened> request(std::string_view method, const http::Url& url, const http::Headers& headers) const;
  // Follows redirections to any host, but not from https to http.
  Result<Opened> get(http::Url url, const http::Headers& headers) const;

 private:
  http::Url url_;
  std::string authorization_;
};

// Headers for a request from byte `offset` to the end.
http::Headers range_from(std::uint64_t offset);

// what: name of the body in errors.
Result<std::string> read_text(Opened& opened, std::size_t bytes_max, std::string_view what);

// Error for an unexpected status; `unavailable` if a retry may help. Passes the server's Retry-After to
// `backoff`.
std::unexpected<Error> unexpected_status(std::string_view what, std::string_view host,
                                         const http::Response& response, Backoff& backoff);

// Shortens the text to one line, for error messages.
std::string printable(std::string_view text);

// Returns nullopt if the text is not a decimal number.
std::optional<std::uint64_t> number(std::optional<std::string_view> text);

}  // namespace octavo::hub
