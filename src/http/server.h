// An HTTP/1.1 server on event loops. One thread serves thousands of connections. An idle stream needs a
// connection object and a socket, but no buffer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "http/exchange.h"
#include "http/server_tls.h"

namespace octavo::http {

// Permissions for web pages of other origins (Fetch standard, CORS protocol).
struct CorsOptions {
  std::vector<std::string> origins = {"*"};
  std::vector<std::string> methods = {"*"};
  std::vector<std::string> headers = {"*"};
  bool allow_credentials = false;
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free port
  std::string uds{};       // path of a Unix socket, instead of host and port
  // Allows other servers on the same port (SO_REUSEPORT). The kernel distributes connections among them.
  bool reuse_port = false;
  int threads = 1;  // number of event loops, unless the server runs on a client's loops

  // Limits. Each comment begins with the HTTP status of a request that exceeds the limit.
  std::uint32_t header_bytes_max = 64 << 10;   // 431
  std::size_t headers_max = 100;               // 431
  std::uint64_t body_bytes_max = 64 << 20;     // 413
  std::uint64_t bodies_bytes_max = 512 << 20;  // 503; bytes of all request bodies that are not released
  std::size_t connections_max = 16384;         // 503
  // unsent bytes of one stream (see Exchange::write)
  std::size_t stream_buffer_bytes_max = std::size_t{1} << 20;

  int header_ms_max = 10'000;  // 408; from the first byte of a request to the end of its header
  int body_ms_max = 300'000;   // 408; from the end of the header to the end of the body
  int idle_ms_max = 75'000;    // time between two requests after which the server closes the connection
  int write_ms_max = 60'000;   // time without a byte read by the client after which the server closes the
                               // connection

  TlsOptions tls{};
  std::optional<CorsOptions> cors{};
  // Called when the header of a request with a body has arrived; request.body is empty. If it returns a
  // response, the server sends it, does not read the body, and closes the connection.
  std::function<std::optional<Response>(const Request&)> admit{};
  // Called for each request, on any thread, before the last byte of the response is sent.
  std::function<void(const Answered&)> answered{};
  // Makes the response for errors that the server detects (400, 408, 413, 431, 503). The default body is
  // the message as plain text.
  std::function<Response(int status, const std::string& message)> refusal{};
};

// Handles a request. It runs on an event loop's thread and must return quickly, so it passes long work to
// other threads.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

class AsyncClient;

class Server {
 public:
  // Listens and starts to serve. Errors: io if the address cannot be bound (field "host", "port" or "uds"),
  // invalid_argument if the TLS files cannot be used.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Handler handler);
  // Starts a server on the event loops of a client, which must outlive the server (see
  // AsyncClient::loop_of()).
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Handler handler, AsyncClient& client);
  ~Server();  // calls stop(0)

  std::uint16_t port() const;   // 0 if the server listens on a Unix socket
  std::string address() const;  // http://HOST:PORT, https://HOST:PORT or unix:PATH
  std::size_t connections() const;

  // Rejects new connections and new requests, and waits up to `ms` milliseconds for responses in progress.
  // Returns whether all have ended.
  bool drain(int ms);
  // Drains for `grace_ms` milliseconds, closes the remaining connections, and ends the server's threads. A
  // second call has no effect.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Server(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace octavo::http
