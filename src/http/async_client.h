// HTTP/1.1 client on event loops, for the router, proxies and pollers. A few threads run many calls at the
// same time. Bodies arrive in pieces, and connections are reused.
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
  // "host:port"; an IPv6 address is in brackets
  std::string text() const;
  std::string url() const;  // "http://host:port" or "https://host:port"
};

// Parses "http://host[:port]" or "https://host[:port]", without a path. Returns invalid_argument on "url" for
// other texts.
Result<Address> parse_base_url(std::string_view url);

struct CallRequest {
  Address address;
  std::string method = "GET";
  std::string target = "/";
  Headers headers = {};  // the client adds Host, Content-Length and Connection
  std::shared_ptr<const std::string> body = {};
  int connect_ms = 5'000;
  int timeout_ms = 60'000;  // timeout of the whole call, including the connect
  // After its end, the call keeps its connection and callbacks for Call::again(), until it is cancelled.
  bool repeats = false;
  // for https; null: AsyncClientOptions::tls
  std::shared_ptr<SSL_CTX> tls = {};
};

// Callbacks of a call, on the thread of its loop. `end` is called last and exactly once, except for a
// cancelled call, which gets no more callbacks. `end` gets `unavailable` if no connection was made, so that
// the peer received nothing, and `io` for later failures.
struct CallEvents {
  // receives status and headers
  std::function<void(Response head)> head;
  std::function<void(std::string_view piece)> body;  // receives decoded bytes
  std::function<void(Result<> result)> end;
  // Optional. Returns false to stop reading for a few milliseconds; the client then calls it again.
  // Meanwhile, received bytes stay in the kernel.
  std::function<bool()> ready = {};
};

class ClientLoop;

// A call. The loop owns it, so hold it as a weak pointer.
class Call {
 public:
  virtual ~Call() = default;
  // Closes the connection, which is the only notice that the peer gets. Does nothing after the end of a
  // call that does not repeat. Call it on the loop's thread.
  virtual void cancel() = 0;
  // Sends the request again, with a new timeout. Requires a call that repeats, has ended and is not
  // cancelled. Call it on the loop's thread.
  virtual void again() = 0;
};

struct AsyncClientOptions {
  int threads = 1;
  std::size_t idle_connections_max = 256;  // for each address and loop
  // How long idle connections are kept, in ms. Common servers close them after 5 s.
  int idle_keep_ms = 4'000;
  // Time in ms for which a loop waits, so that it handles the events that arrive meanwhile together. The wait
  // delays each event, but saves processor time if there are many short calls. 0: no wait
  int pause_ms = 0;
  std::uint32_t header_bytes_max = 64 << 10;
  // from client_tls_context(); null: trusts the system's certificates
  std::shared_ptr<SSL_CTX> tls = {};
};

class EventLoop;
class Exchange;

class AsyncClient {
 public:
  explicit AsyncClient(AsyncClientOptions options);
  // Running calls end without callbacks. Servers on these loops must have stopped.
  ~AsyncClient();

  // Returns the loops in turn. They exist as long as the client.
  ClientLoop& next_loop();
  // For servers on this client's loops: returns the loop of the exchange's connection. A call on this loop
  // can forward data to the exchange without changing threads.
  ClientLoop& loop_of(const Exchange& exchange);
  // For Server::start().
  std::span<const std::shared_ptr<EventLoop>> event_loops() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// An event loop with one thread. Any thread may call post(); only the loop's thread may call the other
// functions.
class ClientLoop {
 public:
  virtual ~ClientLoop() = default;
  virtual void post(std::function<void()> work) = 0;
  virtual void after(int ms, std::function<void()> work) = 0;
  virtual std::shared_ptr<Call> call(CallRequest request, CallEvents events) = 0;
};

}  // namespace octavo::http
