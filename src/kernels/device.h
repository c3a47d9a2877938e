// Where tensors live and where operators run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "tensor/buffer.h"

namespace octavo {

// Work that was recorded instead of run (Stream::record).
class Recording {
 public:
  virtual ~Recording() = default;
};

// Work that runs in order. Operators are enqueued; a host backend has finished them when the call returns.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void synchronize() = 0;

  // True: a device works through the stream by itself, while the host goes on. All below is for such streams.
  virtual bool asynchronous() const { return false; }

  // A mark stands for everything enqueued before it; wait() returns when that is done, whatever comes behind. Any
  // thread may wait.
  using Mark = std::uint64_t;
  virtual Mark mark() { return 0; }
  virtual void wait(Mark) {}

  // Records what `work` enqueues: operators alone, with the very arguments of now, so that memory must stay
  // in its place and what changes must be data in it. replay() enqueues all of it at once.
  virtual std::unique_ptr<Recording> record(const std::function<void()>&) { CHECK(false, "no device"); }
  virtual void replay(const Recording&) { CHECK(false, "no device"); }
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
  // Memory of the host, for copies that run by themselves: what uploads read and downloads write where nobody
  // shall wait for them.
  virtual Result<Buffer> allocate_staging(std::size_t bytes) = 0;
  // Copies between contiguous views of equal bytes; source and destination live until the stream got there.
  virtual void upload(Stream& stream, const View& device, const void* host) = 0;
  virtual void download(Stream& stream, void* host, const View& device) = 0;
  virtual void copy(Stream& stream, const View& to, const View& from) = 0;  // both on the device
};

}  // namespace octavo
