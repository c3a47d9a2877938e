// Optional transport over UCX, which uses RDMA if the hardware has it. The code is in a separate library, so
// the program itself does not depend on UCX. The library is built if UCX's headers are installed.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// One end of a UCX channel. Calls block. beside: a TCP socket to the other process; it shows whether that
// process still runs. Shutting this socket down stops a call. After an error the channel is unusable. After
// its destruction, UCX writes to no buffer of the caller.
class UcxChannel {
 public:
  virtual ~UcxChannel() = default;

  // Returns the address (binary) that the other end passes to connect().
  virtual std::string address() const = 0;
  // Returns unavailable with UCX's message on failure.
  virtual Result<> connect(std::string_view address) = 0;

  // Both functions transfer all pieces in order. The sender and the receiver must pass the same number of
  // pieces with the same lengths. They return io if the other process ends, or if nothing arrives for some
  // seconds.
  virtual Result<> send(std::span<const std::span<const std::byte>> pieces, int beside) = 0;
  virtual Result<> receive(std::span<const std::span<std::byte>> pieces, int beside) = 0;
};

// Sets the variables that UCX reads when it is loaded, unless they are set. With them, UCX does not handle
// signals and does not replace malloc.
void set_ucx_variables();

// Returns unsupported if the library or UCX is not installed, or unavailable with UCX's message.
Result<std::unique_ptr<UcxChannel>> open_ucx_channel();

// Name of the function that the library exports. The caller owns the returned channel. On failure it
// returns null and writes the reason to `why`.
inline constexpr const char* kOpenUcxChannel = "octavo_open_ucx_channel";
using OpenUcxChannel = UcxChannel* (*)(char* why, std::size_t why_size);

}  // namespace octavo
