// Optional UCX transport, which uses RDMA if the hardware supports it. The channel is in a separate library,
// which is built only if UCX's headers are installed, so the program itself does not depend on UCX.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// One end of a channel; its calls block. beside: a socket to the other end, which detects that the other end
// has ended; shutting the socket down ends a wait. After an error, the channel is unusable. After its
// destruction, it writes no memory.
class UcxChannel {
 public:
  virtual ~UcxChannel() = default;

  // Returns an address in bytes, which the other end passes to connect().
  virtual std::string address() const = 0;
  // Connects send() to the other end. Returns unavailable, with UCX's message.
  virtual Result<> connect(std::string_view address) = 0;

  // Transfer all pieces, in order. Both ends must pass the same number of pieces with the same lengths.
  // Return io if the other end has ended, or if there is no progress for some seconds.
  virtual Result<> send(std::span<const std::span<const std::byte>> pieces, int beside) = 0;
  virtual Result<> receive(std::span<const std::span<std::byte>> pieces, int beside) = 0;
};

// Opens a channel. Returns unsupported if the library or UCX is not installed, or unavailable with UCX's
// message.
Result<std::unique_ptr<UcxChannel>> open_ucx_channel();

// Name of the function that the library exports. It returns a channel that the caller owns, or null and the
// reason in `why`.
inline constexpr const char* kOpenUcxChannel = "octavo_open_ucx_channel";
using OpenUcxChannel = UcxChannel* (*)(char* why, std::size_t why_size);

}  // namespace octavo
