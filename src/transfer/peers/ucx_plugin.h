// UCX, where it is installed: RDMA where there is hardware for it, else what UCX finds. Its channel is a
// library beside this program, built where UCX's headers are, so that the program itself needs none.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// One end, for a thread that waits. `beside`: a socket to the other end, which tells when that one is gone;
// its owner may shut it down to end a wait. After an error the channel is of no use, and nothing is written
// any more when it is gone.
class UcxChannel {
 public:
  virtual ~UcxChannel() = default;

  // What the other end sends to; bytes.
  virtual std::string address() const = 0;
  // Where send() goes. Errors: unavailable, with what UCX says.
  virtual Result<> connect(std::string_view address) = 0;

  // All of them, in order; as many and as long ones as the other end says. Errors: io, when the other end has
  // gone or nothing happened for some seconds.
  virtual Result<> send(std::span<const std::span<const std::byte>> pieces, int beside) = 0;
  virtual Result<> receive(std::span<const std::span<std::byte>> pieces, int beside) = 0;
};

// Errors: unsupported where the library or UCX is not there; unavailable, what UCX says.
Result<std::unique_ptr<UcxChannel>> open_ucx_channel();

// What the library exports: a channel that belongs to the caller, or null and why.
inline constexpr const char* kOpenUcxChannel = "octavo_open_ucx_channel";
using OpenUcxChannel = UcxChannel* (*)(char* why, std::size_t why_size);

}  // namespace octavo
