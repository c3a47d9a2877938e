// Parses one response, for both HTTP clients. Only this module uses it.
#pragma once

#include <boost/beast/http/parser.hpp>
#include <boost/optional.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "http/growing_body.h"
#include "http/message.h"

namespace octavo::http {

// Returns a request's header, including the empty line. If `body` is neither null nor empty, the header has
// its Content-Length.
std::string request_head(std::string_view method, std::string_view target, std::string_view host,
                         const Headers& headers, const std::string* body);

class ResponseReader {
 public:
  // method: of the request. A response to HEAD has no body.
  ResponseReader(std::string_view method, std::uint32_t header_bytes_max,
                 boost::optional<std::uint64_t> body_bytes_max);

  // Parses bytes and removes them from `unread`. Skips interim responses such as 100 Continue.
  boost::system::error_code parse(std::string_view& unread);
  // Call it when the peer has closed the connection. Returns an error if the response is incomplete.
  boost::system::error_code end_of_stream();

  bool has_head() const;
  bool done() const { return parser_->is_done(); }
  bool keep_alive() const { return parser_->keep_alive(); }
  Response head() const;
  std::string& body() { return parser_->get().body(); }  // decoded bytes; the caller removes them

 private:
  using Parser = boost::beast::http::response_parser<GrowingBody>;

  void restart();

  bool without_body_;
  std::uint32_t header_bytes_max_;
  boost::optional<std::uint64_t> body_bytes_max_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace octavo::http
