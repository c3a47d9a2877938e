// Messages between an engine's process (EngineHost) and its client (EngineProcess). A frame is its size in
// bytes (u32), the index of the message type in the variant (u8) and the fields (base/pack.h). Each end
// first sends wire_version().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "request/adapter_source.h"
#include "request/engine_client.h"
#include "request/engine_info.h"
#include "request/engine_stats.h"
#include "request/request.h"

namespace octavo::remote {

// Returns a hash of all field types of all messages, so it changes with every change of a message.
std::uint64_t wire_version();

inline constexpr std::size_t kFrameBytesMax = std::size_t{1} << 30;

// Messages to the engine.
struct Hello {
  std::uint64_t version = wire_version();
  // number of KV blocks that the previous process had; 0: first start
  int num_blocks = 0;
  bool keeps_cache = false;  // whether the process gets the descriptor kKeptMemory
};
struct Submit {
  RequestId id = 0;  // request id of the client; outputs contain it
  Request request;
};
struct Abort {
  RequestId id = 0;
};
struct ResetPrefixCache {};
struct LookAtPrefixes {};
struct LogState {};
struct ChangeAdapter {   // see EngineClient::load_adapter and unload_adapter
  std::uint64_t id = 0;  // command number that the response repeats; 0: no response is sent
  AdapterSource source;
  bool unload = false;
};
// Puts the engine to sleep at level 1. Sent when the engine has no requests.
struct Sleep {};
struct WakeUp {};
struct Pause {           // see EngineClient::pause
  std::uint64_t id = 0;  // command number that the response repeats; 0: no response is sent
  PauseMode mode = PauseMode::keep;
};
struct Resume {};
struct CommandSessions {  // see EngineClient::command_sessions
  std::uint64_t id = 0;   // command number that the response repeats; 0: no response is sent
  SessionCommand command{};
};
using ToEngine = std::variant<Hello, Submit, Abort, ResetPrefixCache, ChangeAdapter, Sleep, WakeUp, Pause,
                              Resume, LookAtPrefixes, LogState, CommandSessions>;

// Messages from the engine. Stats arrive several times a second even without requests, so an engine that
// sends nothing is hung.
struct Loading {
  std::uint64_t done = 0, all = 0;  // bytes of weights: read, and in total
};
struct Ready {
  std::uint64_t version = wire_version();
  EngineInfo info;
};
struct Failed {
  Error error;
};
struct AdapterChanged {
  std::uint64_t id = 0;
  std::optional<Error> error;
};
struct Slept {
  std::optional<Error> error;
};
struct Woken {
  std::optional<Error> error;
};
struct Paused {
  std::uint64_t id = 0;
  std::optional<Error> error;
};
struct SessionsChanged {
  std::uint64_t id = 0;
  std::vector<SessionInfo> sessions{};
  std::optional<Error> error{};
};
using FromEngine = std::variant<Loading, Ready, Failed, Output, EngineStats, AdapterChanged, Slept, Woken,
                                Paused, SessionsChanged>;

template <class Message>
void append_frame(std::string& out, const Message& message);

// frame: without its length. Returns an error if the frame is not a valid message.
Result<ToEngine> read_to_engine(std::string_view frame);
Result<FromEngine> read_from_engine(std::string_view frame);

}  // namespace octavo::remote
