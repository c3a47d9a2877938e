// One HTTP/2 connection's calls, without its socket and its clock: bytes in, bytes out (nghttp2). One thread.
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
  // Messages of more bytes are refused. `methods` outlive the session.
  Session(const Methods& methods, std::size_t message_bytes_max, std::weak_ptr<Host> host);
  ~Session();  // open calls are told that they are gone
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // False: what comes is no HTTP/2.
  bool receive(std::span<const char> bytes);
  // Appends what is to be sent, some of it where it is much: call again when that is sent. Nothing is
  // appended: nothing is to be sent.
  void send(std::string& bytes);
  // Nothing follows from either side: close the connection.
  bool over() const;
  bool began() const { return began_; }  // the client speaks HTTP/2
  std::size_t calls() const { return calls_.size(); }
  // The client is to open no more calls here; those that are open go on.
  void shut_down();

 private:
  friend class Call;
  struct Callbacks;  // nghttp2's

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
  std::unordered_map<std::int32_t, std::shared_ptr<Call>> calls_;  // by stream
  std::vector<std::shared_ptr<Call>> drained_;                     // whose answers have been full
  bool began_ = false;
};

}  // namespace octavo::grpc
