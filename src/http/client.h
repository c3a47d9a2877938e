// Small blocking HTTP/1.1 client for benchmarks, the command line and tests. It has one connection and
// sends one request at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"
#include "http/tls_session.h"

namespace octavo::http {

struct ClientOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 80;
  bool tls = false;
  std::shared_ptr<SSL_CTX> tls_context = {};  // null: trusts the system's certificates
  int timeout_ms = 60'000;                    // timeout of connecting, and of each wait for bytes
  // time (now_us) after which no call waits for bytes; 0: no limit
  std::int64_t deadline_us = 0;
  std::uint64_t body_bytes_max = std::uint64_t{1} << 30;
  // whether connect() skips addresses of the host that are not public (public_address.h)
  bool public_only = false;
};

class Client {
 public:
  // Errors: code io with field "host" if the name is unknown, or "port" if there is no connection. With TLS:
  // code invalid_argument with field "host" if the certificate is not valid for the host. With public_only:
  // code unsupported with field "host" if no address of the host is public.
  static Result<Client> connect(ClientOptions options);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  Result<Response> request(std::string_view method, std::string_view target, std::string body = {},
                           Headers headers = {});
  Result<Response> get(std::string_view target) { return request("GET", target); }
  Result<Response> post_json(std::string_view target, std::string body) {
    return request("POST", target, std::move(body), {{"Content-Type", "application/json"}});
  }

  // Sends a request and reads the response in steps. send() only sends; head_for() then returns status and
  // headers, or nullopt if they do not arrive within `ms` milliseconds. open() does both and waits. Each
  // read() returns the next piece of the body, and nullopt at the end.
  Result<> send(std::string_view method, std::string_view target, std::string body = {},
                Headers headers = {});
  Result<std::optional<Response>> head_for(int ms);
  Result<Response> open(std::string_view method, std::string_view target, std::string body = {},
                        Headers headers = {});
  Result<std::optional<std::string>> read();
  // The same as read(), but returns an empty piece if nothing arrives within `ms` milliseconds. A signal also
  // ends the wait of read_for() and of head_for().
  Result<std::optional<std::string>> read_for(int ms);

  // Sends bytes unchanged. For tests of malformed requests and of clients that disconnect.
  Result<> send_raw(std::string_view bytes);
  // returns at least one byte; "" at the end of the stream
  Result<std::string> receive_raw();
  void shutdown_send();
  void close();

 private:
  struct State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::http
