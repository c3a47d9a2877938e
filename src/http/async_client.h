// An HTTP/1.1 client on event loops, for proxies and pollers. A few threads run many calls at the same
// time. Responses arrive in pieces. Connections are kept and reused.
#pragma once

#include <compare>
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

  auto operator<=>(const Address&) const = default;
  std::string text() const;  // "host:port"; an IPv6 host is in brackets
  std::string url() const;   // "http://host:port" or "https://host:port"
};

// Parses "http://host[:port]" or "https://...", without a path. Errors: invalid_argument (field "url").
Result<Address> parse_base_url(std::string_view url);

struct CallRequest {
  Address address;
  std::string method = "GET";
  std::string target = "/";
  Headers headers = {};  // without Host, Content-Length and Connection, which the client adds
  std::shared_ptr<const std::string> body = {};
  int connect_ms = 5'000;
  int timeout_ms = 60'000;            // limit for the complete call, including connecting
  std::shared_ptr<SSL_CTX> tls = {};  // context for https; null: the client's context
};

// Callbacks, on the loop's thread. `end` is called exactly once, after the others. A cancelled call gets no
// further callbacks. The error of `end` is `unavailable` if no connection was made (the peer has received
// nothing), and `io` after other failures.
struct CallEvents {
  std::function<void(Response head)> head;           // receives the head of the response (empty body)
  std::function<void(std::string_view piece)> body;  // receives decoded bytes as they arrive
  std::function<void(Result<> result)> end;
  // Optional. Returns whether to read more. After false, the client calls it again a few milliseconds
  // later; received bytes stay in the kernel until then.
  std::function<bool()> ready = {};
};

class ClientLoop;

// A running call. Destroying the object does not end the call.
class Call {
 public:
  virtual ~Call() = default;
  // Closes the connection. The peer receives no other notice. After the end it has no effect. Called on the
  // loop's thread.
  virtual void cancel() = 0;
};

struct AsyncClientOptions {
  int threads = 1;
  std::size_t idle_connections_max = 256;  // maximum number per address and loop
  int idle_keep_ms = 4'000;  // time for which idle connections are kept; below 5 s, after which common
                             // servers close them
  std::uint32_t header_bytes_max = 64 << 10;
  std::shared_ptr<SSL_CTX> tls = {};  // from client_tls_context(); null: trust the system's certificates
};

class EventLoop;
class Exchange;

class AsyncClient {
 public:
  explicit AsyncClient(AsyncClientOptions options);
  // Ends the threads. Running calls end without callbacks. Servers on these loops must have ended.
  ~AsyncClient();

  // Returns the next loop, in round-robin order. Loops live as long as the client.
  ClientLoop& next_loop();
  // Returns the loop of the exchange's connection, for servers on this client's loops. Calls on this loop
  // deliver their data to the exchange's client without a change of threads.
  ClientLoop& loop_of(const Exchange& exchange);
  // Returns the loops for Server::start().
  std::span<const std::shared_ptr<EventLoop>> event_loops() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// An event loop with one thread. post() may be called from any thread, the other functions on the loop's
// thread.
class ClientLoop {
 public:
  virtual ~ClientLoop() = default;
  virtual void post(std::function<void()> work) = 0;
  virtual void after(int ms, std::function<void()> work) = 0;
  virtual std::shared_ptr<Call> call(CallRequest request, CallEvents events) = 0;
};

}  // namespace octavo::http
