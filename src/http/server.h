// HTTP/1.1 server on event loops, for the OpenAI-compatible API and the router. One thread serves thousands
// of connections. An idle stream needs a connection object and a socket, but no buffer.
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

// Permissions for web pages of other origins (CORS).
struct CorsOptions {
  std::vector<std::string> origins = {"*"};
  std::vector<std::string> methods = {"*"};
  std::vector<std::string> headers = {"*"};
  bool allow_credentials = false;
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free port
  // path of a Unix socket; replaces host and port
  std::string uds{};
  // true: several servers may listen on the port (SO_REUSEPORT). The kernel distributes connections among
  // them.
  bool reuse_port = false;
  // number of event loops; ignored if the server runs on the loops of an AsyncClient (second start())
  int threads = 1;

  // Limits. The number in each comment is the HTTP status of a request that exceeds it.
  std::uint32_t header_bytes_max = 64 << 10;   // 431
  std::size_t headers_max = 100;               // 431
  std::uint64_t body_bytes_max = 64 << 20;     // 413
  // 503; maximum bytes of all request bodies in memory
  std::uint64_t bodies_bytes_max = 512 << 20;
  std::size_t connections_max = 16384;         // 503
  // Maximum number of unsent bytes of one stream; see Exchange::write.
  std::size_t stream_buffer_bytes_max = std::size_t{1} << 20;

  // 408; maximum time from the first byte of a request to the end of its header
  int header_ms_max = 10'000;
  int body_ms_max = 300'000;  // 408; maximum time from the end of the header to the end of the body
  // An idle connection closes after this time without a request.
  int idle_ms_max = 75'000;
  // A connection closes if the client reads nothing for this time, or at most twice this time.
  int write_ms_max = 60'000;

  TlsOptions tls{};
  std::optional<CorsOptions> cors{};
  // Called when the header of a request with a body has arrived. If it returns a response, the server sends
  // it without reading the body, and closes the connection.
  std::function<std::optional<Response>(const Request&)> admit{};
  // Called once for each request, on any thread, before the last byte of the response is sent.
  std::function<void(const Answered&)> answered{};
  // Makes the response for errors that the server detects (400, 408, 413, 431, 503). By default the body is
  // the message as plain text.
  std::function<Response(int status, const std::string& message)> refusal{};
};

// Handles a request on the thread of an event loop. It must return quickly and leave long work to other
// threads.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

class AsyncClient;

class Server {
 public:
  // Returns io on "host", "port" or "uds" if the address cannot be bound, or invalid_argument if the TLS
  // files cannot be used.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Handler handler);
  // Starts a server on the event loops of `client`, which must outlive the server. See
  // AsyncClient::loop_of().
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Handler handler, AsyncClient& client);
  ~Server();  // calls stop(0)

  // Returns 0 for a Unix socket.
  std::uint16_t port() const;
  std::string address() const;  // http://HOST:PORT, https://HOST:PORT or unix:PATH
  std::size_t connections() const;

  // Rejects new connections and requests, and waits up to `ms` milliseconds for responses in progress.
  // Returns true if all of them are complete.
  bool drain(int ms);
  // Calls drain(grace_ms), closes the remaining connections, and ends the threads. A second call does
  // nothing.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Server(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace octavo::http
