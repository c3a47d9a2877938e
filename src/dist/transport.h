// Sends bytes between ranks on several hosts; MessageGroup uses it. TCP is implemented in this folder, and
// MPI in a separate library (mpi_plugin.h).
#pragma once

#include <cstddef>
#include <span>

#include "base/error.h"

namespace octavo {

class Transport {
 public:
  struct Send {
    int to;
    std::span<const std::byte> bytes;
  };
  struct Receive {
    int from;
    std::span<std::byte> bytes;
  };

  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sends and receives messages, and returns when all messages are complete. `sends` and `receives` each
  // contain a rank at most once. Messages between two ranks keep their order and their sizes. A message that
  // no call expects yet is stored for a later call. So two ranks that both send first do not block each
  // other. timeout_ms is the maximum time without progress; 0: unlimited. Returns unavailable if a rank is
  // dead or does not respond.
  virtual Result<> exchange(std::span<const Send> sends, std::span<const Receive> receives,
                            int timeout_ms) = 0;

  // Returns an error if a rank is known to be dead. It does not send messages. Any thread may call it.
  virtual Result<> check() const { return {}; }
};

}  // namespace octavo
