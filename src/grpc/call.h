// The server side of a gRPC call over HTTP/2: messages in both directions, then a status.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace octavo::grpc {

// gRPC status codes in use.
enum class Status : std::uint8_t {
  ok = 0,
  invalid_argument = 3,
  not_found = 5,
  resource_exhausted = 8,
  unimplemented = 12,
};

class Call;
class Session;

// Receives the messages of a call, on the connection's thread.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // Handles the next message; `bytes` are valid only during this function. Returns false to pause until
  // Call::resume().
  virtual bool message(std::string_view bytes) = 0;
  // The client has sent its last message. The receiver must soon call finish().
  virtual void half_closed() = 0;
  // The call has ended before finish(): the client has canceled it or disconnected.
  virtual void gone() = 0;
};

// Makes the receiver of a new call.
using Method = std::function<std::shared_ptr<Receiver>(std::shared_ptr<Call>)>;
// By path: "/package.Service/Method".
using Methods = std::map<std::string, Method, std::less<>>;

// Runs work on a connection's thread.
class Host {
 public:
  virtual ~Host() = default;
  // Thread-safe. Drops `work` if the connection has closed.
  virtual void post(std::function<void()> work) = 0;
};

// All functions except post() must run on the connection's thread. They have no effect after the end of the
// call.
class Call {
 public:
  explicit Call(std::weak_ptr<Host> host) : host_(std::move(host)) {}

  // Returns the W3C trace context in the call's metadata; "" if none exists.
  const std::string& traceparent() const { return traceparent_; }

  // Adds a message of `bytes` bytes; the caller must fill the returned memory before it returns.
  char* send(std::size_t bytes);
  void finish(Status status, std::string_view message = {});
  // Ends a pause: the receiver accepts messages again.
  void resume();
  void post(std::function<void()> work) {
    if (const auto host = host_.lock()) host->post(std::move(work));
  }

 private:
  friend class Session;

  const std::weak_ptr<Host> host_;
  Session* session_ = nullptr;  // null after the call has ended
  std::int32_t stream_ = 0;
  std::shared_ptr<Receiver> receiver_;  // null: the call was refused or has ended
  std::string method_, path_, content_type_, traceparent_;
  std::string in_;              // received bytes of undelivered messages
  std::size_t held_bytes_ = 0;  // bytes not yet returned to the flow-control window; the receiver must resume
                                // first
  bool waits_ = false;          // waiting for resume()
  bool client_done_ = false;
  std::string out_;  // output, from sent_ on
  std::size_t sent_ = 0;
  bool out_full_ = false;   // out_ has reached its limit: messages wait until a part is sent
  bool answering_ = false;  // the HTTP/2 response header was sent
  bool finished_ = false;
  Status status_ = Status::ok;
  std::string status_message_;
};

}  // namespace octavo::grpc
