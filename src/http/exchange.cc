#include "http/exchange.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/clock.h"
#include "http/connection.h"
#include "http/inflate.h"

namespace octavo::http {

Exchange::Exchange(Request request, BodyShare body_share, std::shared_ptr<Connection> connection,
                   std::uint64_t serial)
    : request_(std::move(request)),
      body_share_(std::move(body_share)),
      begun_us_(now_us()),
      connection_(std::move(connection)),
      serial_(serial) {}
Exchange::Exchange(Request request) : Exchange(std::move(request), BodyShare(), nullptr, 0) {}

Exchange::~Exchange() {
  if (!connection_) return;
  count(status_ == 0 ? 500 : status_.load(), 0);
  connection_->abandon(serial_);
}

std::size_t Exchange::loop_number() const { return connection_->loop_number(); }

// Calls ServerOptions::answered, once for each request.
void Exchange::count(int status, std::uint64_t response_bytes) {
  const auto& answered = connection_->options().answered;
  if (!answered || counted_.test_and_set()) return;
  std::uint64_t request_bytes = 0;
  if (const auto length = request_.headers.find("Content-Length"))
    std::from_chars(length->data(), length->data() + length->size(), request_bytes);
  answered({.method = request_.method,
            .path = request_.path,
            .status = status,
            .request_bytes = request_bytes,
            .response_bytes = response_bytes,
            .seconds = static_cast<double>(now_us() - begun_us_) * 1e-6});
}

Response Exchange::refusal(int status, const std::string& text) const {
  const auto& make = connection_->options().refusal;
  return make ? make(status, text) : Response{.status = status, .content_type = "text/plain", .body = text};
}

std::optional<Response> Exchange::reserve(std::uint64_t bytes) {
  if (body_share_.grow_to(bytes)) return std::nullopt;
  return refusal(
      503, fmt::format("request bodies and unread responses have the {} MiB that are allowed: retry later",
                       connection_->options().bodies_bytes_max >> 20));
}

std::optional<Response> Exchange::decode_body(std::uint64_t bytes_max) {
  const auto coding = request_.headers.find("Content-Encoding");
  if (!coding || equal_ignoring_case(*coding, "identity")) return std::nullopt;
  if (!equal_ignoring_case(*coding, "gzip") && !equal_ignoring_case(*coding, "deflate"))
    return refusal(415, "Content-Encoding must be gzip or deflate");
  std::string body;
  const std::uint64_t compressed = request_.body.size();
  bool full = false;
  const Inflated result = inflate(request_.body, bytes_max, body, [&](std::uint64_t size) {
    full = !body_share_.grow_to(compressed + size);
    return !full;
  });
  request_.body.clear();
  if (full) return refusal(503, "too many request bodies wait: retry later");
  if (result == Inflated::too_large)
    return refusal(413,
                   fmt::format("the body must have at most {} bytes, also after decompression", bytes_max));
  if (result == Inflated::malformed) return refusal(400, "the body does not match its Content-Encoding");
  request_.body = std::move(body);
  return std::nullopt;
}

void Exchange::respond(Response response) {
  if (amend_) amend_(response);
  count(response.status, response.body.size());
  for (const auto& [name, value] : extra_) response.headers.add(name, value);
  connection_->respond(serial_, std::move(response));
}
void Exchange::start_stream(Response response) {
  if (amend_) amend_(response);
  status_ = response.status;
  for (const auto& [name, value] : extra_) response.headers.add(name, value);
  connection_->start_stream(serial_, std::move(response));
}
bool Exchange::write(std::string_view piece) { return connection_->write(serial_, piece); }
std::size_t Exchange::unsent_bytes() const { return connection_->unsent_bytes(); }
bool Exchange::wait_writable(std::function<void()> resume) {
  return connection_->wait_writable(serial_, std::move(resume));
}
void Exchange::cut() { connection_->cut(serial_); }
void Exchange::finish() {
  count(status_, 0);
  connection_->finish(serial_);
}
void Exchange::on_close(std::function<void(CloseReason)> callback) {
  connection_->on_close(serial_, std::move(callback));
}

}  // namespace octavo::http
