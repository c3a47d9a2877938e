// All calls of one HTTP/2 connection, without socket and clock: converts received bytes to calls, and
// replies to bytes (nghttp2). Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "grpc/call.h"

struct nghttp2_session;

namespace octavo::grpc {

class Session {
 public:
  // methods must outlive the session. Larger messages than message_bytes_max are rejected.
  Session(const Methods& methods, std::size_t message_bytes_max, std::weak_ptr<Host> host);
  ~Session();  // calls Receiver::disconnected() of open calls
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Processes received bytes. Returns false if they are not HTTP/2.
  bool receive(std::span<const char> bytes);
  // Appends bytes to send. It may append only some of them, so call it again after sending, until it appends
  // nothing.
  void send(std::string& bytes);
  // Returns true if both sides have sent everything, so that the connection can close.
  bool over() const;
  bool began() const { return began_; }  // the client has sent HTTP/2's preface
  std::size_t calls() const { return calls_.size(); }
  // Asks the client to open no more calls. Open calls continue.
  void shut_down();

 private:
  friend class Call;
  struct Callbacks;

  void open(Call& call);
  void take(Call& call, std::string_view bytes);
  void pump(Call& call);
  bool take_message(Call& call, std::size_t& at);
  void answer(Call& call);
  void give_back(Call& call, std::size_t bytes);
  void end(Call& call);
  std::ptrdiff_t fill(Call& call, std::span<char> bytes, std::uint32_t& flags);

  const Methods& methods_;
  const std::size_t message_bytes_max_;
  const std::weak_ptr<Host> host_;
  nghttp2_session* session_ = nullptr;
  std::unordered_map<std::int32_t, std::shared_ptr<Call>> calls_;  // open calls by stream id
  std::vector<std::shared_ptr<Call>> drained_;  // calls whose output was full and can continue
  bool began_ = false;
};

}  // namespace octavo::grpc
