// Memory of tensors and streams of operators.
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

  // True: the device runs the stream while the host continues. The functions below are only for such streams.
  virtual bool asynchronous() const { return false; }

  // A mark covers everything enqueued before it; wait() returns when that work is done. Any thread may wait.
  using Mark = std::uint64_t;
  virtual Mark mark() { return 0; }
  virtual void wait(Mark) {}

  // Records the operators that `work` enqueues, with their current arguments. Memory must therefore stay at
  // its address, and only its contents may change. replay() enqueues all of it at once.
  virtual std::unique_ptr<Recording> record(const std::function<void()>&) { CHECK(false, "no device"); }
  virtual void replay(const Recording&) { CHECK(false, "no device"); }
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;
  virtual std::size_t memory_bytes() const = 0;     // total
  virtual std::size_t available_bytes() const = 0;  // currently available; 0: unknown
  // False: the device has separate memory, which the host does not use.
  virtual bool shares_host_memory() const = 0;

  // Zeroed memory of this device.
  virtual Result<Buffer> allocate(std::size_t bytes) = 0;
  // Host memory for asynchronous copies: the source of uploads and the target of downloads.
  virtual Result<Buffer> allocate_staging(std::size_t bytes) = 0;
  // Copies between contiguous views of equal size. Source and destination must live until the stream has run
  // the copy.
  virtual void upload(Stream& stream, const View& device, const void* host) = 0;
  virtual void download(Stream& stream, void* host, const View& device) = 0;
  virtual void copy(Stream& stream, const View& to, const View& from) = 0;  // both on the device
};

}  // namespace octavo
