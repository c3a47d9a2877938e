#include "http/response_reader.h"

#include <fmt/format.h>

#include <iterator>

namespace octavo::http {

namespace beast_http = boost::beast::http;
using boost::system::error_code;

std::string request_head(std::string_view method, std::string_view target, std::string_view host,
                         const Headers& headers, const std::string* body) {
  std::string head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", method, target, host);
  const auto out = std::back_inserter(head);
  for (const auto& [name, value] : headers) fmt::format_to(out, "{}: {}\r\n", name, value);
  if (body != nullptr) fmt::format_to(out, "Content-Length: {}\r\n", body->size());
  return head + "\r\n";
}

ResponseReader::ResponseReader(std::string_view method, std::uint32_t header_bytes_max,
                               boost::optional<std::uint64_t> body_bytes_max)
    : without_body_(method == "HEAD"), header_bytes_max_(header_bytes_max), body_bytes_max_(body_bytes_max) {
  restart();
}

void ResponseReader::restart() {
  parser_ = std::make_unique<Parser>();
  parser_->eager(true);
  parser_->header_limit(header_bytes_max_);
  parser_->body_limit(body_bytes_max_);
  if (without_body_) parser_->skip(true);
}

error_code ResponseReader::parse(std::string_view& unread) {
  while (!unread.empty() && !parser_->is_done()) {
    error_code error;
    unread.remove_prefix(parser_->put(boost::asio::buffer(unread), error));
    if (error && error != beast_http::error::need_more) return error;
    if (parser_->is_done() && parser_->get().result_int() / 100 == 1)
      restart();
    else if (error)
      break;
  }
  return {};
}

error_code ResponseReader::end_of_stream() {
  error_code error;
  if (!parser_->is_header_done()) return beast_http::error::end_of_stream;
  parser_->put_eof(error);
  return error;
}

bool ResponseReader::has_head() const {
  return parser_->is_header_done() && parser_->get().result_int() / 100 != 1;
}

Response ResponseReader::head() const {
  Response head{.status = static_cast<int>(parser_->get().result_int()), .content_type = ""};
  for (const auto& field : parser_->get().base()) {
    if (field.name() == beast_http::field::content_type)
      head.content_type = std::string(field.value());
    else
      head.headers.add(std::string(field.name_string()), std::string(field.value()));
  }
  return head;
}

}  // namespace octavo::http
