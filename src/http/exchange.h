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

// Why a response is incomplete.
enum class CloseReason : std::uint8_t {
  // the client closed its sending side, or the connection broke
  client_disconnected,
  // the client reads too slowly: the buffer of the stream is full, or a write timed out
  too_slow,
  server_stopping,  // the grace period has passed
  out_of_memory,    // memory for this connection could not be allocated
};

// A completed response, for logs and metrics.
struct Answered {
  std::string_view method, path;
  int status = 0;
  std::uint64_t request_bytes = 0, response_bytes = 0;  // from Content-Length; 0: no such header
  double seconds = 0;                                   // from complete request to complete response
};

// A request and its response. The handler calls respond(), or start_stream(), write() any number of times,
// and finish(). Any thread may call these functions; they do not wait. If an exchange is destroyed without
// a response, the client gets 500. If it is destroyed before finish(), the connection closes, so that the
// client notices that the response is incomplete.
class Exchange {
 public:
  Exchange(Request request, BodyShare body_share, std::shared_ptr<Connection> connection,
           std::uint64_t serial);
  virtual ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const Request& request() const { return request_; }
  virtual std::size_t loop_number() const;
  // Moves the body out. Its bytes count in the server's budget until release_body() or the end of the
  // exchange. Call it on the thread that handles the request.
  std::string take_body() { return std::exchange(request_.body, {}); }
  // Decodes a Content-Encoding of gzip or deflate. Returns an error response if the coding is unknown, if
  // the data is malformed or larger than `bytes_max`, or if the server's budget is used up.
  std::optional<Response> decode_body(std::uint64_t bytes_max);
  // Counts the bytes of a response in the server's budget until the end of the exchange, for a response that
  // waits for a slow client. Returns an error response if the budget is used up.
  std::optional<Response> reserve(std::uint64_t bytes);
  void release_body() { const BodyShare released = std::move(body_share_); }

  // Adds a field to the response, whether it is complete, a stream or an error.
  void add_header(std::string name, std::string value) { extra_.add(std::move(name), std::move(value)); }

  // Call it before the request is handled.
  void set_request_header(std::string name, std::string value) {
    request_.headers.set(std::move(name), std::move(value));
  }
  // Replaces the body by one of about the same size. Call it on the thread that handles the request.
  void set_body(std::string body) { request_.body = std::move(body); }
  // change: called before the response is sent, for a stream before its first piece. Call it before the
  // request is handled.
  void amend(std::function<void(Response&)> change) { amend_ = std::move(change); }

  virtual void respond(Response response);

  // Sends the header. response.body is the first piece and may be empty. HTTP/1.1 clients get chunked
  // coding.
  virtual void start_stream(Response response);
  // Sends a piece of any size. Returns false if no more pieces are needed: the client has disconnected, or
  // it reads so slowly that more than ServerOptions::stream_buffer_bytes_max bytes are unsent, and the
  // connection closes.
  virtual bool write(std::string_view piece);
  // Returns true if the buffer is full. The caller should then wait until the server's thread calls
  // `resume`, once, because there is space or the connection has closed.
  virtual bool wait_writable(std::function<void()> resume);
  virtual void finish();
  // Returns the number of bytes that the kernel has not accepted yet. A fast producer can wait until it
  // decreases.
  virtual std::size_t unsent_bytes() const;
  // Closes the connection with CloseReason::too_slow.
  virtual void cut();

  // callback: called once if the connection closes before the response is complete. It runs on the server's
  // thread, or at once if the connection is closed already.
  virtual void on_close(std::function<void(CloseReason)> callback);

 protected:
  // For subclasses without a connection, which override all virtual functions.
  explicit Exchange(Request request);

 private:
  void count(int status, std::uint64_t response_bytes);
  Response refusal(int status, const std::string& text) const;

  Request request_;
  BodyShare body_share_;
  const std::int64_t begun_us_;
  std::atomic<int> status_ = 0;
  std::atomic_flag counted_;
  Headers extra_;
  std::function<void(Response&)> amend_;    // may be empty
  std::shared_ptr<Connection> connection_;  // may be null
  // number of the request on its connection
  std::uint64_t serial_;
};

}  // namespace octavo::http
