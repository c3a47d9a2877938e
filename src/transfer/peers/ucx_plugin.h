// Optional UCX transport: it uses RDMA if the hardware supports it. The channel is a separate library, built
// if UCX's headers are installed, so the program itself does not depend on UCX.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// One end of a channel, for a blocking thread. `beside`: a socket to the other end, which shows that the
// other end is gone; its owner may shut it down to end a wait. After an error the channel is unusable. No
// memory is written after its destruction.
class UcxChannel {
 public:
  virtual ~UcxChannel() = default;

  // Address for the other end's connect(), in bytes.
  virtual std::string address() const = 0;
  // Connects send() to the other end. Errors: unavailable, with UCX's message.
  virtual Result<> connect(std::string_view address) = 0;

  // Transfer all pieces, in order. Number and lengths must match on both ends. Errors: io, when the other end
  // is gone or there is no progress for some seconds.
  virtual Result<> send(std::span<const std::span<const std::byte>> pieces, int beside) = 0;
  virtual Result<> receive(std::span<const std::span<std::byte>> pieces, int beside) = 0;
};

// Errors: unsupported, the library or UCX is not installed; unavailable, with UCX's message.
Result<std::unique_ptr<UcxChannel>> open_ucx_channel();

// Function that the library exports: returns a channel that the caller owns, or null and the reason.
inline constexpr const char* kOpenUcxChannel = "octavo_open_ucx_channel";
using OpenUcxChannel = UcxChannel* (*)(char* why, std::size_t why_size);

}  // namespace octavo
