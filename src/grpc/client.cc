#include "grpc/client.h"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "base/clock.h"
#include "http/client.h"
#include "http/url.h"

namespace octavo::grpc {
namespace {

// bytes of a message's prefix: compressed flag and big-endian size
constexpr std::size_t kMessagePrefix = 5;

nghttp2_nv request_field(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

std::string framed(std::string_view message) {
  std::string out(kMessagePrefix, '\0');
  for (std::size_t i = 1; i < kMessagePrefix; ++i) out[i] = static_cast<char>(message.size() >> 8 * (4 - i));
  return out.append(message);
}

// State of the call, for nghttp2's callbacks.
struct Exchange {
  std::string out;  // message with its prefix
  std::size_t sent = 0;
  std::size_t reply_bytes_max = 0;
  std::string reply = {};
  std::string http_status = {}, status = {}, message = {};
  bool too_long = false, ended = false;

  static Exchange& of(void* user) { return *static_cast<Exchange*>(user); }

  static ssize_t read(nghttp2_session*, std::int32_t, std::uint8_t* to, std::size_t size,
                      std::uint32_t* flags, nghttp2_data_source*, void* user) {
    Exchange& self = of(user);
    const std::size_t count = std::min(size, self.out.size() - self.sent);
    std::memcpy(to, self.out.data() + self.sent, count);
    self.sent += count;
    if (self.sent == self.out.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(count);
  }
  static int header(nghttp2_session*, const nghttp2_frame*, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
    const std::string_view key(reinterpret_cast<const char*>(name), name_size);
    const std::string_view text(reinterpret_cast<const char*>(value), value_size);
    if (key == ":status") of(user).http_status = text;
    if (key == "grpc-status") of(user).status = text;
    if (key == "grpc-message") of(user).message = text;
    return 0;
  }
  static int data(nghttp2_session*, std::uint8_t, std::int32_t, const std::uint8_t* bytes, std::size_t size,
                  void* user) {
    Exchange& self = of(user);
    self.too_long |= self.reply.size() + size > self.reply_bytes_max + kMessagePrefix;
    if (!self.too_long) self.reply.append(reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int closed(nghttp2_session*, std::int32_t, std::uint32_t, void* user) {
    of(user).ended = true;
    return 0;
  }
};

using SessionPointer = std::unique_ptr<nghttp2_session, decltype(&nghttp2_session_del)>;

SessionPointer session_of(Exchange& exchange) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Exchange::header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Exchange::data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Exchange::closed);
  nghttp2_session* session = nullptr;
  nghttp2_session_client_new(&session, callbacks, &exchange);
  nghttp2_session_callbacks_del(callbacks);
  return {session, &nghttp2_session_del};
}

void submit(nghttp2_session* session, const UnaryCall& call) {
  const std::string authority = http::host_and_port(call.host, call.port);
  const std::array<nghttp2_nv, 6> fields{
      request_field(":method", "POST"),  request_field(":scheme", "http"),
      request_field(":path", call.path), request_field(":authority", authority),
      request_field("te", "trailers"),   request_field("content-type", "application/grpc")};
  const nghttp2_data_provider provider{.source = {.ptr = nullptr}, .read_callback = Exchange::read};
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, nullptr, 0);
  nghttp2_submit_request(session, nullptr, fields.data(), fields.size(), &provider, nullptr);
}

Result<> send_all(nghttp2_session* session, http::Client& client) {
  std::string bytes;
  const std::uint8_t* some = nullptr;
  for (ssize_t count = 0; (count = nghttp2_session_mem_send(session, &some)) > 0;)
    bytes.append(reinterpret_cast<const char*>(some), static_cast<std::size_t>(count));
  return bytes.empty() ? Result<>() : client.send_raw(bytes);
}

Result<std::string> reply_of(Exchange exchange) {
  if (exchange.too_long)
    return failure(ErrorCode::io, "the reply has more than {} bytes", exchange.reply_bytes_max);
  if (exchange.http_status != "200" || exchange.status.empty())
    return failure(ErrorCode::io, "the server answered HTTP status {} without a gRPC status",
                   exchange.http_status.empty() ? "(none)" : exchange.http_status);
  if (exchange.status != "0")
    return failure(ErrorCode::io, "gRPC status {} {}", exchange.status, exchange.message);
  const std::string& reply = exchange.reply;
  if (reply.size() < kMessagePrefix || framed(std::string_view(reply).substr(kMessagePrefix)) != reply)
    return failure(ErrorCode::io, "the reply is not one uncompressed message");
  return reply.substr(kMessagePrefix);
}

}  // namespace

Result<std::string> call(const UnaryCall& call, std::string_view message) {
  const std::int64_t ends_us = now_us() + std::int64_t{call.timeout_ms} * 1000;
  TRY(http::Client client,
      http::Client::connect({.host = call.host, .port = call.port, .timeout_ms = call.timeout_ms}));
  Exchange exchange{.out = framed(message), .reply_bytes_max = call.reply_bytes_max};
  const SessionPointer session = session_of(exchange);
  submit(session.get(), call);
  for (;;) {
    TRY_VOID(send_all(session.get(), client));
    if (exchange.ended) return reply_of(std::move(exchange));
    if (now_us() > ends_us) return failure(ErrorCode::unavailable, "no reply within {} ms", call.timeout_ms);
    TRY(const std::string bytes, client.receive_raw());
    if (bytes.empty()) return failure(ErrorCode::unavailable, "the server closed the connection");
    const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
    if (const ssize_t taken = nghttp2_session_mem_recv(session.get(), from, bytes.size()); taken < 0)
      return failure(ErrorCode::io, "the server does not speak HTTP/2: {}",
                     nghttp2_strerror(static_cast<int>(taken)));
  }
}

}  // namespace octavo::grpc
