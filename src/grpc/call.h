// The server side of one gRPC call over HTTP/2: messages in both directions, then a status.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace octavo::grpc {

// The gRPC status codes that this server uses.
enum class Status : std::uint8_t {
  ok = 0,
  invalid_argument = 3,
  not_found = 5,
  resource_exhausted = 8,
  unimplemented = 12,
};

class Call;
class Session;

// Receives the messages of a call. The connection's thread calls the functions.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // `bytes` are valid only during this function. If it returns false, no messages arrive until
  // Call::resume().
  virtual bool message(std::string_view bytes) = 0;
  // The client has sent its last message. The receiver must call Call::finish() soon.
  virtual void half_closed() = 0;
  // The call ended before finish(): the client has cancelled it or disconnected.
  virtual void disconnected() = 0;
};

using Method = std::function<std::shared_ptr<Receiver>(std::shared_ptr<Call>)>;
// Methods by path: "/package.Service/Method".
using Methods = std::map<std::string, Method, std::less<>>;

// Runs work on a connection's thread.
class Host {
 public:
  virtual ~Host() = default;
  // Thread-safe. `work` is dropped if the connection has closed.
  virtual void post(std::function<void()> work) = 0;
};

// Only the connection's thread may call these functions, except post(). After the end of the call they do
// nothing.
class Call {
 public:
  explicit Call(std::weak_ptr<Host> host) : host_(std::move(host)) {}

  // Returns the W3C trace context of the call, or "".
  const std::string& traceparent() const { return traceparent_; }

  // Adds a message of `bytes` bytes. The caller must write it to the returned memory at once.
  char* send(std::size_t bytes);
  void finish(Status status, std::string_view message = {});
  // The receiver accepts messages again.
  void resume();
  void post(std::function<void()> work) {
    if (const auto host = host_.lock()) host->post(std::move(work));
  }

 private:
  friend class Session;

  const std::weak_ptr<Host> host_;
  Session* session_ = nullptr;  // null after the end of the call
  std::int32_t stream_ = 0;
  // null: the call was rejected or has ended
  std::shared_ptr<Receiver> receiver_;
  std::string method_, path_, content_type_, traceparent_;
  std::string in_;  // received bytes that were not delivered
  // received bytes that are not returned to the client's flow-control window until the receiver resumes
  std::size_t held_bytes_ = 0;
  bool waits_ = false;
  bool client_done_ = false;
  // bytes to send; the bytes before sent_ are already sent
  std::string out_;
  std::size_t sent_ = 0;
  // true: out_ is full, so the client's messages wait until some of out_ is sent
  bool out_full_ = false;
  // whether the response header was sent
  bool answering_ = false;
  bool finished_ = false;
  Status status_ = Status::ok;
  std::string status_message_;
};

}  // namespace octavo::grpc
