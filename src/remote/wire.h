// Messages between an engine's process and its client.
//
// A frame consists of its number of bytes (u32), the index of the message in its variant (u8) and the
// message's fields (base/pack.h). Both ends send wire_version() first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "request/adapter_source.h"
#include "request/engine_client.h"
#include "request/engine_info.h"
#include "request/engine_stats.h"
#include "request/request.h"

namespace octavo::remote {

// Returns a hash of the types of all fields of all messages. It changes automatically when a message changes.
std::uint64_t wire_version();

inline constexpr std::size_t kFrameBytesMax = std::size_t{1} << 30;

// Messages to the engine.
struct Hello {
  std::uint64_t version = wire_version();
  int num_blocks = 0;  // number of KV blocks that the engine had before its death; 0: the engine starts for
                       // the first time
  bool keeps_cache = false;  // whether the engine has the descriptor kKeptMemory
};
struct Submit {
  RequestId id = 0;  // client's id of the request, which outputs contain
  Request request;
};
struct Abort {
  RequestId id = 0;
};
struct ResetPrefixCache {};
struct LookAtPrefixes {};
struct LogState {};
struct ChangeAdapter {   // see EngineClient::load_adapter and unload_adapter
  std::uint64_t id = 0;  // id of the response; 0: no response
  AdapterSource source;
  bool unload = false;
};
struct Sleep {};  // see EngineClient::sleep, level 1; sent when all requests have finished
struct WakeUp {};
struct Pause {           // see EngineClient::pause
  std::uint64_t id = 0;  // id of the response; 0: no response
  PauseMode mode = PauseMode::keep;
};
struct Resume {};
using ToEngine = std::variant<Hello, Submit, Abort, ResetPrefixCache, ChangeAdapter, Sleep, WakeUp, Pause,
                              Resume, LookAtPrefixes, LogState>;

// Messages from the engine. Stats are sent several times a second, even without work, so an engine that sends
// nothing is hung.
struct Loading {
  std::uint64_t done = 0, all = 0;  // bytes of weights: read so far, and in total
};
struct Ready {
  std::uint64_t version = wire_version();
  EngineInfo info;
};
struct Failed {  // reports that loading failed
  Error error;
};
struct AdapterChanged {
  std::uint64_t id = 0;
  std::optional<Error> error;
};
struct Slept {
  std::optional<Error> error;
};
struct Paused {
  std::uint64_t id = 0;
  std::optional<Error> error;
};
using FromEngine = std::variant<Loading, Ready, Failed, Output, EngineStats, AdapterChanged, Slept, Paused>;

// Appends a frame. Message: one of the types above.
template <class Message>
void append_frame(std::string& out, const Message& message);

// Reads a frame without its length. Returns an error if it is not a message of this version.
Result<ToEngine> read_to_engine(std::string_view frame);
Result<FromEngine> read_from_engine(std::string_view frame);

}  // namespace octavo::remote
