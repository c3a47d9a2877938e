// The engine's side of the connection between an engine's process and its client.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "remote/frame_socket.h"
#include "remote/wakeup.h"
#include "remote/wire.h"
#include "request/engine_client.h"

namespace octavo::remote {

class EngineHost {
 public:
  // fd: the socket; see kChildSocket. Call follow_parent() first.
  explicit EngineHost(int fd) : socket_(fd) {}

  // Receives the client's first message. Returns an error if the client has disconnected, or if its wire
  // version differs.
  Result<Hello> hello();

  // Reports progress while the engine loads. Any thread.
  void loading(std::size_t done, std::size_t all);
  void failed(const Error& error);

  // Serves the client until it disconnects.
  void run(EngineClient& engine);

  // Called on the engine's thread after each step. run()'s thread then sends the outputs immediately. The
  // engine's thread does not send itself, because the kernel wakes a socket's reader on the sender's core and
  // expects the sender to sleep.
  void flush();

 private:
  class Sink;

  void take(ToEngine&& message, EngineClient& engine);
  void submit(Submit&& wanted, EngineClient& engine);
  void deliver(const Output& output);
  void ended(RequestId id);
  template <class Message>
  void send(const Message& message);
  void send_steps(EngineClient& engine, bool with_stats);
  bool wait(bool& readable);

  FrameSocket socket_;  // only run() and hello() receive from it
  Wakeup unsent_;       // wakes run() when there are bytes to send

  std::mutex mutex_;   // guards socket_.out, sending, and all members below
  bool gone_ = false;  // whether the client has disconnected
  // Output frames: those of the running step, and those of earlier steps (ready to send).
  std::string step_, steps_;
  // step_ends_: the frames end an answer; stats_due_: stats must be sent
  bool step_ends_ = false, stats_due_ = false;

  std::mutex ids_mutex_;
  std::unordered_map<RequestId, RequestId> engine_ids_;  // by the client's id; only unfinished requests
};

}  // namespace octavo::remote
