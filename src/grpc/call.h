// The server's side of one call of gRPC over HTTP/2: messages come, messages go, a status ends it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace octavo::grpc {

// gRPC's codes, those that are used.
enum class Status : std::uint8_t {
  ok = 0,
  invalid_argument = 3,
  not_found = 5,
  resource_exhausted = 8,
  unimplemented = 12,
};

class Call;
class Session;

// Who takes a call's messages. On the thread of the call's connection.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // The next message, good until this returns. False: none is wanted before Call::resume().
  virtual bool message(std::string_view bytes) = 0;
  // The client has said all: finish() is due.
  virtual void half_closed() = 0;
  // The call has ended before finish(): the client has cancelled it, or is gone.
  virtual void gone() = 0;
};

// What a call's messages go to; called when it begins.
using Method = std::function<std::shared_ptr<Receiver>(std::shared_ptr<Call>)>;
// By path, "/package.Service/Method".
using Methods = std::map<std::string, Method, std::less<>>;

// The thread of a connection, and what is to be done there.
class Host {
 public:
  virtual ~Host() = default;
  // From any thread. Once the connection is closed `work` is dropped.
  virtual void post(std::function<void()> work) = 0;
};

// On the thread of its connection, but for post(). After its end calls change nothing.
class Call {
 public:
  explicit Call(std::weak_ptr<Host> host) : host_(std::move(host)) {}

  // Sends a message of so many bytes: its place, to be filled at once.
  char* send(std::size_t bytes);
  void finish(Status status, std::string_view message = {});
  // The receiver wants messages again.
  void resume();
  void post(std::function<void()> work) {
    if (const auto host = host_.lock()) host->post(std::move(work));
  }

 private:
  friend class Session;

  const std::weak_ptr<Host> host_;
  Session* session_ = nullptr;  // null: it has ended
  std::int32_t stream_ = 0;
  std::shared_ptr<Receiver> receiver_;  // null: refused, or at its end
  std::string method_, path_, content_type_;
  std::string in_;              // received, and not taken yet
  std::size_t held_bytes_ = 0;  // of the stream's window, given back when the receiver goes on
  bool waits_ = false;          // for resume()
  bool client_done_ = false;
  std::string out_;  // to be sent, from sent_ on
  std::size_t sent_ = 0;
  bool out_full_ = false;   // no message is taken before some of it is sent
  bool answering_ = false;  // HTTP/2's header is on its way
  bool finished_ = false;
  Status status_ = Status::ok;
  std::string status_message_;
};

}  // namespace octavo::grpc
