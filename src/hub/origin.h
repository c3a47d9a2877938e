// HTTP requests to one server, with credentials that only it receives. Blocking; one object may be used by
// any thread.
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

// A response whose body was not read yet.
struct Opened {
  http::Client client;
  http::Response head;
  http::Url url;  // after redirections
};

class Origin {
 public:
  // authorization: value of the header field; "": anonymous.
  Origin(http::Url url, std::string authorization)
      : url_(std::move(url)), authorization_(std::move(authorization)) {}

  const http::Url& url() const { return url_; }
  bool anonymous() const { return authorization_.empty(); }

  // Error: `unavailable` if the server does not answer.
  Result<Opened> request(std::string_view method, const http::Url& url, const http::Headers& headers) const;
  // Follows redirections to any host, but not from https to http.
  Result<Opened> get(http::Url url, const http::Headers& headers) const;

 private:
  http::Url url_;
  std::string authorization_;
};

// Headers that request the bytes from `offset` on.
http::Headers range_from(std::uint64_t offset);

// The whole body. `what` names it in errors.
Result<std::string> read_text(Opened& opened, std::size_t bytes_max, std::string_view what);

// The error for a status that is not expected: `unavailable` if a retry may help; `backoff` receives the
// server's Retry-After.
std::unexpected<Error> unexpected_status(std::string_view what, std::string_view host,
                                         const http::Response& response, Backoff& backoff);

// A server's text for an error: one line, not long.
std::string printable(std::string_view text);

// The decimal number, or nullopt.
std::optional<std::uint64_t> number(std::optional<std::string_view> text);

}  // namespace octavo::hub
