// Byte transport between ranks on several hosts, used by MessageGroup. TCP is implemented here, and MPI in a
// separate library (mpi_plugin.h).
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

  // Returns after everything is sent and received. A rank is at most once in each list. Messages between two
  // ranks keep their order and their sizes. An unexpected message is kept for a later call, so that two ranks
  // which both send first do not block each other. timeout_ms: maximum time without progress; 0: unlimited.
  // Error (unavailable): a rank is dead or does not answer.
  virtual Result<> exchange(std::span<const Send> sends, std::span<const Receive> receives,
                            int timeout_ms) = 0;

  // Whether all ranks are alive, as far as known without a message. Any thread may call it.
  virtual Result<> check() const { return {}; }
};

}  // namespace octavo
