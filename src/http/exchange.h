// One request and the way to answer it.
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

// Why an answer was cut short.
enum class CloseReason : std::uint8_t {
  client_gone,      // the client closed its side, or the connection broke
  too_slow,         // the client does not read: the stream's buffer or the write timeout ran out
  server_stopping,  // the server's grace period is over
  out_of_memory,    // there was none left for this connection
};

// How a request was answered.
struct Answered {
  std::string_view method, path;
  int status = 0;
  std::uint64_t request_bytes = 0, response_bytes = 0;  // as Content-Length has them; 0: it does not
  double seconds = 0;                                   // since all of the request was there
};

// Answer it once: respond(), or start_stream() then any number of write() and one finish(). All of it may be
// called from any thread and never waits. An exchange that is dropped unanswered sends 500; a stream that is
// dropped unfinished closes the connection, so that the client does not take it for complete.
class Exchange {
 public:
  Exchange(Request request, BodyShare body_share, std::shared_ptr<Connection> connection,
           std::uint64_t serial);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const Request& request() const { return request_; }
  // Of the event loop that the connection is on.
  std::size_t loop_number() const;
  // Moves the body out. It goes on counting in the server's budget, for what is made of it, until the
  // exchange ends or release_body() is called. Only for the thread that handles the request.
  std::string take_body() { return std::exchange(request_.body, {}); }
  // Undoes the body's Content-Encoding (gzip, deflate), in at most `bytes_max` bytes. A response refuses it:
  // not that coding, malformed, too large, or the server's budget is used up.
  std::optional<Response> decode_body(std::uint64_t bytes_max);
  void release_body() { const BodyShare released = std::move(body_share_); }

  // A field for whatever response follows, also one that is made elsewhere.
  void add_header(std::string name, std::string value) { extra_.add(std::move(name), std::move(value)); }

  void respond(Response response);

  // Sends the head; response.body is the first piece (may be empty). HTTP/1.1 clients get chunks, HTTP/1.0
  // clients the plain bytes.
  void start_stream(Response response);
  // A piece of any size. False: the client is gone, or more than ServerOptions::stream_buffer_bytes_max of
  // earlier pieces is unsent and the connection is being closed. The owner can stop producing.
  bool write(std::string_view piece);
  // For owners that can wait: true when so much is unsent that the next piece should be written only when
  // `resume` is called, once, on the server's thread: when there is room, or the connection has closed.
  bool wait_writable(std::function<void()> resume);
  void finish();
  // Bytes that the client has not taken yet. Who makes more than it takes can wait for it.
  std::size_t unsent_bytes() const;
  // Closes the connection of a client that does not read (CloseReason::too_slow).
  void cut();

  // Called once, on the server's thread (or at once, when it has already happened), if the connection closes
  // before the whole answer is out. Not called after a complete answer.
  void on_close(std::function<void(CloseReason)> callback);

 private:
  void count(int status, std::uint64_t response_bytes);

  Request request_;
  BodyShare body_share_;
  const std::int64_t begun_us_;
  std::atomic<int> status_ = 0;  // of a stream
  std::atomic_flag counted_;
  Headers extra_;
  std::shared_ptr<Connection> connection_;
  std::uint64_t serial_;  // which of the connection's requests this is
};

}  // namespace octavo::http
