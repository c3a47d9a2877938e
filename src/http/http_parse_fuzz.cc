// Fuzzer: passes arbitrary bytes to the parsers of targets, addresses, forms, event streams and compressed
// bodies, which must return a value or an error. It also sends the bytes to a server, which must respond or
// close the connection, and continue to work.
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "http/exchange.h"
#include "http/form.h"
#include "http/inflate.h"
#include "http/server.h"
#include "http/sse.h"
#include "http/target.h"
#include "http/url.h"

namespace {

using namespace octavo;
namespace asio = boost::asio;

void read_targets(std::string_view text) {
  if (const auto target = http::parse_target(text)) {
    CHECK(target->path == "*" || target->path.starts_with('/'));
    CHECK(target->path.find("/../") == std::string::npos && target->path.find("//") == std::string::npos);
    const auto again = http::parse_target(http::percent_encoded(target->path));
    CHECK(again && again->path == target->path);
    (void)http::query_value(target->query, "mode");
  }
  if (const auto url = http::parse_url(text)) {
    CHECK(!url->host.empty());
    (void)http::redirected(*url, text);
  }
}

void read_form(std::string_view text) {
  const auto parts = http::parse_form("multipart/form-data; boundary=b", text);
  if (!parts) return;
  CHECK(parts->size() <= http::kFormPartsMax);
  for (const http::FormPart& part : *parts)
    CHECK(part.data.data() >= text.data() && part.data.end() <= text.end());
}

// Events must not depend on how the bytes are divided.
void read_events(std::string_view text, std::size_t step) {
  http::SseReader at_once, in_pieces;
  const auto whole = at_once.push(text);
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size(); at += step)
    for (std::string& event : in_pieces.push(text.substr(at, step))) pieces.push_back(std::move(event));
  CHECK(whole == pieces);
}

void inflate_body(std::string_view text) {
  constexpr std::uint64_t kMost = 1 << 16;
  std::string out;
  (void)http::inflate(text, kMost, out, [](std::uint64_t size) { return size <= kMost; });
  CHECK(out.size() <= kMost);
}

// Returns everything that the server sends.
std::string answer_to(const http::Server& server, std::string_view bytes) {
  asio::io_context context;
  asio::ip::tcp::socket socket(context);
  socket.connect({asio::ip::address_v4::loopback(), server.port()});
  boost::system::error_code ignored;
  asio::write(socket, asio::buffer(bytes), ignored);
  socket.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  std::string answer;
  boost::system::error_code error;
  do {
    asio::read(socket, asio::dynamic_buffer(answer), error);
  } while (error == asio::error::interrupted);  // libFuzzer's alarm signal interrupts reads
  return answer;
}

void call_server(std::string_view bytes) {
  static const auto server = [] {
    http::ServerOptions options;
    options.body_bytes_max = 4096;
    options.header_bytes_max = 4096;
    return http::Server::start(options,
                               [](std::shared_ptr<http::Exchange> exchange) {
                                 if (auto refusal = exchange->decode_body(4096))
                                   return exchange->respond(*std::move(refusal));
                                 exchange->respond({.body = exchange->take_body()});
                               })
        .value();
  }();
  const std::string answer = answer_to(*server, bytes);
  CHECK(answer.empty() || answer.starts_with("HTTP/1."));
  static int requested = 0;
  if (++requested % 64 != 0) return;
  const std::string good = answer_to(*server, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  CHECK(good.starts_with("HTTP/1.1 200"), "{}", good);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0:
      read_targets(text);
      break;
    case 1:
      read_form(text);
      break;
    case 2:
      read_events(text, 1 + data[0] / 8);
      break;
    case 3:
      inflate_body(text);
      break;
    default:
      call_server(text);
  }
  return 0;
}
