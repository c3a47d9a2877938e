// Interfaces for memory of tensors and for streams of operators.
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

// Work recorded by Stream::record.
class Recording {
 public:
  virtual ~Recording() = default;
};

// A queue of work that runs in order. Operators are enqueued; on host backends, they have finished when the
// call returns.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void synchronize() = 0;

  // True: the device runs the stream while the host continues. Only such streams have the functions below.
  virtual bool asynchronous() const { return false; }

  // A mark covers all work enqueued before it. wait() returns when this work is done; any thread may wait.
  using Mark = std::uint64_t;
  virtual Mark mark() { return 0; }
  virtual void wait(Mark) {}

  // Records the operators that `work` enqueues, with their current arguments. So memory must stay at its
  // address; only its contents may change. replay() enqueues all recorded operators at once.
  virtual std::unique_ptr<Recording> record(const std::function<void()>&) { CHECK(false, "no device"); }
  virtual void replay(const Recording&) { CHECK(false, "no device"); }
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;
  virtual std::size_t memory_bytes() const = 0;     // total
  virtual std::size_t available_bytes() const = 0;  // 0: unknown
  // False: the device has separate memory, which the host cannot access.
  virtual bool shares_host_memory() const = 0;

  // Allocates zeroed memory of this device.
  virtual Result<Buffer> allocate(std::size_t bytes) = 0;
  // Allocates host memory for asynchronous copies: the source of uploads or the target of downloads.
  virtual Result<Buffer> allocate_staging(std::size_t bytes) = 0;
  // Copies between contiguous views of equal size. Source and destination must exist until the stream has run
  // the copy.
  virtual void upload(Stream& stream, const View& device, const void* host) = 0;
  virtual void download(Stream& stream, void* host, const View& device) = 0;
  virtual void copy(Stream& stream, const View& to, const View& from) = 0;  // both on the device
};

}  // namespace octavo
