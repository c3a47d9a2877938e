// Optional UCX transport, which uses RDMA if the hardware supports it. The channel is in a separate
// library, which is built only if UCX's headers are installed. So the program itself does not depend on
// UCX.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// One end of a channel; its calls block. beside: a socket to the other end, which detects that the other
// end is gone; shutting it down ends a wait. After an error the channel is unusable. After its destruction
// no memory is written.
class UcxChannel {
 public:
  virtual ~UcxChannel() = default;

  // Address in bytes; the other end passes it to connect().
  virtual std::string address() const = 0;
  // Connects send() to the other end. Errors: unavailable, with UCX's message.
  virtual Result<> connect(std::string_view address) = 0;

  // Transfer all pieces, in order. Both ends must pass the same number of pieces, with the same lengths.
  // Errors: io, the other end is gone or there is no progress for some seconds.
  virtual Result<> send(std::span<const std::span<const std::byte>> pieces, int beside) = 0;
  virtual Result<> receive(std::span<const std::span<std::byte>> pieces, int beside) = 0;
};

// Errors: unsupported, the library or UCX is not installed; unavailable, with UCX's message.
Result<std::unique_ptr<UcxChannel>> open_ucx_channel();

// Function that the library exports. Returns a channel that the caller owns, or null and the reason in
// `why`.
inline constexpr const char* kOpenUcxChannel = "octavo_open_ucx_channel";
using OpenUcxChannel = UcxChannel* (*)(char* why, std::size_t why_size);

}  // namespace octavo
