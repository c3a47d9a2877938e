// The engine's side: what its process does with the socket to its client.
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
  // fd: the socket; see kChildSocket and follow_parent().
  explicit EngineHost(int fd) : socket_(fd) {}

  // Waits for what the client says first. Errors: it has gone, or speaks another version.
  Result<Hello> hello();

  // Any thread, while the engine loads.
  void loading(std::size_t done, std::size_t all);
  void failed(const Error& error);

  // Serves the client until it goes.
  void run(EngineClient& engine);

  // The engine's thread, after each of its steps: what the step brought goes out at once. It is run()'s thread
  // that sends: the kernel wakes a socket's reader on the sender's core, and expects the sender to sleep.
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

  FrameSocket socket_;  // received from by run() and hello() alone
  Wakeup unsent_;       // for run(): there is something to send

  std::mutex mutex_;  // guards socket_.out, sending, and what follows
  bool gone_ = false;  // the client
  // Frames of outputs: of the step that runs, and of those before it, which are to be sent.
  std::string step_, steps_;
  bool step_ends_ = false, stats_due_ = false;  // whether answers end in them

  std::mutex ids_mutex_;
  std::unordered_map<RequestId, RequestId> engine_ids_;  // of unfinished requests, by the client's ids
};

}  // namespace octavo::remote
