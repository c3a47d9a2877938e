// The calls of one HTTP/2 connection, without socket and clock: bytes in, bytes out (nghttp2).
// Single-threaded.
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
  // Refuses messages above message_bytes_max. `methods` must outlive the session.
  Session(const Methods& methods, std::size_t message_bytes_max, std::weak_ptr<Host> host);
  ~Session();  // calls gone() for each open call
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Processes received bytes. False: they are not HTTP/2.
  bool receive(std::span<const char> bytes);
  // Appends bytes to send. They may be only a part: call it again after they were sent. Appends nothing if
  // nothing is left to send.
  void send(std::string& bytes);
  // Both sides have sent everything: close the connection.
  bool over() const;
  bool began() const { return began_; }  // the client has sent HTTP/2's preface
  std::size_t calls() const { return calls_.size(); }
  // Asks the client to open no more calls on this connection; open calls continue.
  void shut_down();

 private:
  friend class Call;
  struct Callbacks;  // nghttp2's callbacks

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
  std::vector<std::shared_ptr<Call>> drained_;                     // calls whose full output was sent
  bool began_ = false;
};

}  // namespace octavo::grpc
