// The server's side of one gRPC call over HTTP/2: messages in both directions, then a status.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace octavo::grpc {

// The gRPC status codes in use.
enum class Status : std::uint8_t {
  ok = 0,
  invalid_argument = 3,
  not_found = 5,
  resource_exhausted = 8,
  unimplemented = 12,
};

class Call;
class Session;

// Receives a call's messages, on the thread of the call's connection.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // The next message; `bytes` are valid during the call. Return false to receive none before Call::resume().
  virtual bool message(std::string_view bytes) = 0;
  // The client has sent its last message. The receiver must call finish() soon.
  virtual void half_closed() = 0;
  // The call ended before finish(): the client cancelled it or disconnected.
  virtual void gone() = 0;
};

// Creates the receiver of a new call's messages.
using Method = std::function<std::shared_ptr<Receiver>(std::shared_ptr<Call>)>;
// Methods by path: "/package.Service/Method".
using Methods = std::map<std::string, Method, std::less<>>;

// Runs work on the thread of a connection.
class Host {
 public:
  virtual ~Host() = default;
  // Safe from any thread. Drops `work` if the connection is closed.
  virtual void post(std::function<void()> work) = 0;
};

// All functions except post() must run on the connection's thread. Calls after the end have no effect.
class Call {
 public:
  explicit Call(std::weak_ptr<Host> host) : host_(std::move(host)) {}

  // W3C trace context from the call's metadata; "": none.
  const std::string& traceparent() const { return traceparent_; }

  // Appends a message of `bytes` bytes to the output; the caller fills the returned memory at once.
  char* send(std::size_t bytes);
  void finish(Status status, std::string_view message = {});
  // Tells the call that the receiver accepts messages again.
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
  std::string in_;              // received bytes that are not delivered yet
  std::size_t held_bytes_ = 0;  // bytes not yet returned to the flow-control window; the receiver must resume
                                // first
  bool waits_ = false;          // waiting for resume()
  bool client_done_ = false;
  std::string out_;  // bytes to send, from sent_ on
  std::size_t sent_ = 0;
  bool out_full_ = false;   // output is full: no message is delivered until part of out_ is sent
  bool answering_ = false;  // the HTTP/2 response header was sent
  bool finished_ = false;
  Status status_ = Status::ok;
  std::string status_message_;
};

}  // namespace octavo::grpc
