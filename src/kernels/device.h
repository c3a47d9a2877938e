// Interfaces of a device: memory for tensors (Device), and queues of operators (Stream).
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

// Operators that Stream::record captured, such as a CUDA graph.
class Recording {
 public:
  virtual ~Recording() = default;
};

// A queue of operators that run in order, such as a CUDA stream. On host backends, the call of an operator
// returns when the operator has finished.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void synchronize() = 0;

  // Returns true if the device runs operators while the host continues. Only such streams support record()
  // and replay().
  virtual bool asynchronous() const { return false; }

  // mark() marks the end of the work that was enqueued so far. wait() returns when all work before the mark
  // is done; any thread may call it.
  using Mark = std::uint64_t;
  virtual Mark mark() { return 0; }
  virtual void wait(Mark) {}

  // record() captures the operators that `work` enqueues, with their current arguments; replay() enqueues
  // all captured operators with one call. Memory of the arguments must keep its address; its contents may
  // change.
  virtual std::unique_ptr<Recording> record(const std::function<void()>&) { CHECK(false, "no device"); }
  virtual void replay(const Recording&) { CHECK(false, "no device"); }
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;
  virtual std::size_t memory_bytes() const = 0;
  virtual std::size_t available_bytes() const = 0;  // free memory; 0: unknown
  // Returns false if the device has separate memory, which the host cannot access.
  virtual bool shares_host_memory() const = 0;
  // Returns the number of devices of this type that this process can choose from.
  virtual int devices_of_host() const { return 1; }

  // Lets the device do what prepare() has left for later (MatrixSource::file). The files must be intact.
  virtual void start_late_work() {}

  // Allocates zeroed memory on this device.
  virtual Result<Buffer> allocate(std::size_t bytes) = 0;
  // Allocates host memory that upload() and download() can copy asynchronously.
  virtual Result<Buffer> allocate_staging(std::size_t bytes) = 0;
  // Copies between contiguous views of equal size. Source and destination must stay valid until the stream
  // has run the copy.
  virtual void upload(Stream& stream, const View& device, const void* host) = 0;
  virtual void download(Stream& stream, void* host, const View& device) = 0;
  // Both views are on the device.
  virtual void copy(Stream& stream, const View& to, const View& from) = 0;
  // Sets all bytes of a contiguous view to 0.
  virtual void clear(Stream& stream, const View& device) = 0;
};

}  // namespace octavo
