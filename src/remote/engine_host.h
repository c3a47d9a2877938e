// Runs in an engine's process: receives commands from the client (EngineProcess) and sends outputs.
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
  // fd: kChildSocket, or kServerSocket for an engine on another host. Call follow_parent() first.
  explicit EngineHost(int fd) : socket_(fd) {}

  // Receives the first message. Returns an error if the client has disconnected or has another wire
  // version.
  Result<Hello> hello();

  // Reports the progress of loading. Any thread may call it.
  void loading(std::size_t done, std::size_t all);
  void failed(const Error& error);

  // Serves the client until it disconnects.
  void run(EngineClient& engine);

  // The engine's thread calls it after each step; the thread of run() then sends the outputs. The engine's
  // thread does not send itself, because the kernel expects a sender to sleep, and would wake the receiver on
  // the sender's core.
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

  FrameSocket socket_;  // only the thread of run() receives
  Wakeup unsent_;

  std::mutex mutex_;  // guards socket_.out, sending and all members below
  bool closed_ = false;
  // Frames with outputs: step_ of the running step, steps_ of earlier steps.
  std::string step_, steps_;
  // step_ends_: step_ has the last output of a sequence. stats_due_: stats must be sent.
  bool step_ends_ = false, stats_due_ = false;

  std::mutex ids_mutex_;
  // engine's id by client's id, for unfinished requests
  std::unordered_map<RequestId, RequestId> engine_ids_;
};

}  // namespace octavo::remote
