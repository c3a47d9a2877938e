#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "http/body_budget.h"
#include "http/message.h"

namespace octavo::http {

class Connection;

// Reason why a response is incomplete.
enum class CloseReason : std::uint8_t {
  client_gone,      // the client closed its sending side, or the connection broke
  too_slow,         // the client reads too slowly: the stream's buffer is full, or a write timed out
  server_stopping,  // the server's grace period is over
  out_of_memory,    // an allocation failed for this connection
};

// Record of a finished response.
struct Answered {
  std::string_view method, path;
  int status = 0;
  std::uint64_t request_bytes = 0, response_bytes = 0;  // from Content-Length; 0 without this header
  double seconds = 0;                                   // seconds since the complete request arrived
};

// A request and its response. The handler responds once: with respond(), or with start_stream(), write()
// any number of times and finish(). These functions may be called from any thread and never wait. If the
// exchange is destroyed without a response, it sends 500. If it is destroyed before finish(), it closes the
// connection, so that the client sees that the response is incomplete.
class Exchange {
 public:
  Exchange(Request request, BodyShare body_share, std::shared_ptr<Connection> connection,
           std::uint64_t serial);
  virtual ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const Request& request() const { return request_; }
  virtual std::size_t loop_number() const;
  // Moves the body out. The body counts in the server's budget until the exchange ends or release_body() is
  // called. Called on the thread that handles the request.
  std::string take_body() { return std::exchange(request_.body, {}); }
  // Decodes the body's Content-Encoding (gzip, deflate). Returns an error response if the coding is
  // unknown, if the data is malformed or has more than `bytes_max` bytes, or if the server's budget is used
  // up.
  std::optional<Response> decode_body(std::uint64_t bytes_max);
  void release_body() { const BodyShare released = std::move(body_share_); }

  // Adds a header field to the response, whichever function makes the response.
  void add_header(std::string name, std::string value) { extra_.add(std::move(name), std::move(value)); }

  // Replaces a header field of the request. Only before the request is handled.
  void set_request_header(std::string name, std::string value) {
    request_.headers.set(std::move(name), std::move(value));
  }
  // Registers a function that changes the response before it is sent; of a stream, it sees the first piece.
  // Only before the request is handled.
  void amend(std::function<void(Response&)> change) { amend_ = std::move(change); }

  virtual void respond(Response response);

  // Sends the header. response.body is the first piece and may be empty. HTTP/1.1 clients receive chunks,
  // HTTP/1.0 clients plain bytes.
  virtual void start_stream(Response response);
  // Sends a piece of any size. Returns false if the caller can stop: the client has disconnected, or more
  // than ServerOptions::stream_buffer_bytes_max bytes of earlier pieces are unsent and the connection is
  // being closed.
  virtual bool write(std::string_view piece);
  // Returns true if the buffer is full: the caller then waits with the next piece until `resume` is called.
  // The server's thread calls `resume` once, when the buffer has space or the connection has closed.
  virtual bool wait_writable(std::function<void()> resume);
  virtual void finish();
  // Returns the number of bytes that the client has not received yet. A fast producer can wait until it
  // falls.
  virtual std::size_t unsent_bytes() const;
  // Closes the connection because the client does not read (CloseReason::too_slow).
  virtual void cut();

  // Registers a callback, which is called once if the connection closes before the response is complete. It
  // runs on the server's thread, or immediately if the connection has already closed.
  virtual void on_close(std::function<void(CloseReason)> callback);

 protected:
  // For subclasses without a connection. They override all virtual functions.
  explicit Exchange(Request request);

 private:
  void count(int status, std::uint64_t response_bytes);

  Request request_;
  BodyShare body_share_;
  const std::int64_t begun_us_;
  std::atomic<int> status_ = 0;  // HTTP status of a stream
  std::atomic_flag counted_;
  Headers extra_;
  std::function<void(Response&)> amend_;    // empty: responses stay unchanged
  std::shared_ptr<Connection> connection_;  // null if the exchange has no connection
  std::uint64_t serial_;                    // index of the request on its connection
};

}  // namespace octavo::http
