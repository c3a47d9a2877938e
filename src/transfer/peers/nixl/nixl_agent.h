// This engine's NIXL agent: reads memory of other agents, and sends them notifications. The functions may be
// called by any thread: a mutex guards the library, which is not thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "tensor/buffer.h"
#include "transfer/peers/nixl/nixl_library.h"

namespace octavo {

// A range of another agent's memory.
struct NixlRange {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
};

// The agent to read from.
struct NixlSource {
  std::string agent{};     // name of the agent (NixlAgent::add)
  int memory = kNixlDram;  // kind of the agent's memory
  std::uint64_t device = 0;
};

class NixlAgent;

// Host memory that the agent has registered: the destination of reads. The agent must outlive it.
class NixlBuffer {
 public:
  ~NixlBuffer();
  NixlBuffer(const NixlBuffer&) = delete;
  NixlBuffer& operator=(const NixlBuffer&) = delete;

  std::span<std::byte> memory() const { return {static_cast<std::byte*>(buffer_.data()), buffer_.bytes()}; }

 private:
  friend class NixlAgent;
  NixlBuffer(NixlAgent& agent, Buffer buffer) : agent_(agent), buffer_(std::move(buffer)) {}

  NixlAgent& agent_;
  Buffer buffer_;
  NixlRegistrations* registration_ = nullptr;
};

class NixlAgent {
 public:
  // library: see load_nixl(). backend: name of the NIXL plugin that transfers, for example UCX. Returns an
  // error if the library or the plugin is missing.
  static Result<std::unique_ptr<NixlAgent>> start(const std::string& library, const std::string& backend);
  ~NixlAgent();

  // Adds the agent with this metadata (binary), and returns its name.
  Result<std::string> add(std::string_view metadata);
  // Closes the connections to the agent.
  void remove(const std::string& agent);

  Result<std::unique_ptr<NixlBuffer>> register_memory(Buffer buffer);

  // Reads the ranges, one after the other, to the start of the buffer. Returns io if the other agent ends, if
  // the read takes longer than `most_ms`, or if `stop` becomes true.
  Result<> read(const NixlSource& from, std::span<const NixlRange> ranges, const NixlBuffer& to, int most_ms,
                const std::atomic<bool>& stop);
  // Takes the buffer of a failed read, which may still write to it. The last kKeptBuffers of them are not
  // reused. The caller must remove() the other agent first.
  void keep(std::unique_ptr<NixlBuffer> buffer);

  Result<> notify(const std::string& agent, std::string_view text);

 private:
  friend class NixlBuffer;
  static constexpr std::size_t kKeptBuffers = 16;

  explicit NixlAgent(const NixlLibrary& library) : nixl_(library) {}
  Result<> open(const std::string& backend);
  Result<NixlRequest*> post(const NixlSource& from, std::span<const NixlRange> ranges, const NixlBuffer& to);
  Result<> finish(NixlRequest* request, int most_ms, const std::atomic<bool>& stop);

  const NixlLibrary& nixl_;
  NixlAgentHandle* agent_ = nullptr;
  NixlBackendHandle* backend_ = nullptr;
  std::mutex mutex_;  // guards the library's calls and kept_
  std::deque<std::unique_ptr<NixlBuffer>> kept_;
};

}  // namespace octavo
