// How the bytes of ranks on several hosts get from one to the other: what a MessageGroup stands on. There is
// one for TCP here, and one for MPI in a library of its own (mpi_plugin.h).
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

  // Returns when all of it has been sent and received; a rank is there once in each list. Messages between
  // two ranks keep their order, and are received in the sizes in which they are sent. What comes and is not
  // asked for is kept for a later call, so that ranks which both send first do not wait for each other.
  // timeout_ms: how long nothing may happen; 0: for ever. Errors (unavailable): a rank is gone, or does not
  // answer.
  virtual Result<> exchange(std::span<const Send> sends, std::span<const Receive> receives,
                            int timeout_ms) = 0;

  // Whether all ranks are still there, as far as that can be told without a message. Any thread.
  virtual Result<> check() const { return {}; }
};

}  // namespace octavo
