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

// A queue of operators that run in order. On host backends, an operator has finished when the call returns.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void synchronize() = 0;

  // Returns true if the device runs the stream while the host continues. Only such streams have the functions
  // below.
  virtual bool asynchronous() const { return false; }

  // Marks the work that was enqueued so far. wait() returns when all work before the mark is done; any thread
  // may wait.
  using Mark = std::uint64_t;
  virtual Mark mark() { return 0; }
  virtual void wait(Mark) {}

  // Records the operators that `work` enqueues, with their current arguments. Their memory must keep its
  // address; its contents may change. replay() enqueues all recorded operators with one call.
  virtual std::unique_ptr<Recording> record(const std::function<void()>&) { CHECK(false, "no device"); }
  virtual void replay(const Recording&) { CHECK(false, "no device"); }
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;
  virtual std::size_t memory_bytes() const = 0;     // total memory of the device
  virtual std::size_t available_bytes() const = 0;  // free memory; 0: unknown
  // Returns false if the device has separate memory, which the host cannot access.
  virtual bool shares_host_memory() const = 0;

  // Allocates zeroed memory of this device.
  virtual Result<Buffer> allocate(std::size_t bytes) = 0;
  // Allocates host memory for asynchronous copies: the source of uploads or the target of downloads.
  virtual Result<Buffer> allocate_staging(std::size_t bytes) = 0;
  // Copies between contiguous views of equal size. Source and destination must stay valid until the stream
  // has run the copy.
  virtual void upload(Stream& stream, const View& device, const void* host) = 0;
  virtual void download(Stream& stream, void* host, const View& device) = 0;
  // copies between two views on the device
  virtual void copy(Stream& stream, const View& to, const View& from) = 0;
};

}  // namespace octavo
