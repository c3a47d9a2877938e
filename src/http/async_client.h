// An HTTP/1.1 client on event loops, for proxies and pollers: many calls at a time on few threads, answers
// piece by piece as they arrive, connections kept alive and used again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/message.h"
#include "http/tls_session.h"

namespace octavo::http {

struct Address {
  std::string host;
  std::uint16_t port = 80;
  bool tls = false;

  std::string text() const;  // "host:port", an IPv6 host in brackets
  std::string url() const;   // "http://host:port", or https
};

// "http://host[:port]" or "https://...", without a path. Errors: invalid_argument (field "url").
Result<Address> parse_base_url(std::string_view url);

struct CallRequest {
  Address address;
  std::string method = "GET";
  std::string target = "/";
  Headers headers = {};  // without Host, Content-Length, Connection: the client writes those
  std::shared_ptr<const std::string> body = {};
  int connect_ms = 5'000;
  int timeout_ms = 60'000;            // for the whole call, connecting included
  std::shared_ptr<SSL_CTX> tls = {};  // for https; null: the client's
};

// Callbacks, on the loop's thread. `end` is last and is called exactly once, unless the call is cancelled:
// then no callback follows. Errors of `end`: unavailable if no connection was made, so the peer has seen
// nothing; otherwise io.
struct CallEvents {
  std::function<void(Response head)> head;           // its body is empty
  std::function<void(std::string_view piece)> body;  // decoded bytes as they arrive
  std::function<void(Result<> result)> end;
  // Optional. Returns whether to read more; after false it is called again a few milliseconds later. Until
  // then the peer's bytes wait in the kernel.
  std::function<bool()> ready = {};
};

class ClientLoop;

// A call on its way. Dropping it changes nothing.
class Call {
 public:
  virtual ~Call() = default;
  // On the loop's thread: closes the connection, which is how the peer learns of it. After the end: nothing.
  virtual void cancel() = 0;
};

struct AsyncClientOptions {
  int threads = 1;
  std::size_t idle_connections_max = 256;  // idle connections per address and loop
  int idle_keep_ms = 4'000;                // below the 5 s after which common servers close them
  std::uint32_t header_bytes_max = 64 << 10;
  std::shared_ptr<SSL_CTX> tls = {};  // client_tls_context() for https; null: with the system's certificates
};

class EventLoop;
class Exchange;

class AsyncClient {
 public:
  explicit AsyncClient(AsyncClientOptions options);
  // Ends the threads; what is under way ends without events. A server on its loops must have ended.
  ~AsyncClient();

  // The next loop, round robin. Loops live as long as the client.
  ClientLoop& next_loop();
  // For a server on this client's loops: the loop of the exchange's connection. Data of a call on that loop
  // reaches the exchange's client without a change of threads.
  ClientLoop& loop_of(const Exchange& exchange);
  // For Server::start().
  std::span<const std::shared_ptr<EventLoop>> event_loops() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// One thread. post() may be called from anywhere, the rest on the loop's thread only.
class ClientLoop {
 public:
  virtual ~ClientLoop() = default;
  virtual void post(std::function<void()> work) = 0;
  virtual void after(int ms, std::function<void()> work) = 0;
  virtual std::shared_ptr<Call> call(CallRequest request, CallEvents events) = 0;
};

}  // namespace octavo::http
