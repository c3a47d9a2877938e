// Where tensors live and where operators run.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"
#include "tensor/buffer.h"

namespace octavo {

// Work that runs in order. Operators are enqueued; a host backend may have finished them when the call
// returns.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void synchronize() = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;
  virtual std::size_t memory_bytes() const = 0;     // in all
  virtual std::size_t available_bytes() const = 0;  // that could be had now; 0: the system does not say
  // False: memory of its own, which nobody else on this machine needs.
  virtual bool shares_host_memory() const = 0;

  // Zeroed memory of this device.
  virtual Result<Buffer> allocate(std::size_t bytes) = 0;
  // Copies between contiguous views of equal bytes; source and destination live until the stream got there.
  virtual void upload(Stream& stream, const View& device, const void* host) = 0;
  virtual void download(Stream& stream, void* host, const View& device) = 0;
};

}  // namespace octavo
