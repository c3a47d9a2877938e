// The engine requests that belong to one HTTP request.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "request/engine_client.h"
#include "serve/admission.h"
#include "serve/metrics.h"

namespace octavo {

class OutputReceiver {
 public:
  // Called on the engine's thread. index: the number that was passed to sink_of(), such as the index of the
  // prompt.
  virtual void deliver(std::size_t index, Output&& output) noexcept = 0;

 protected:
  ~OutputReceiver() = default;
};

// Returns a sink that passes outputs to the receiver and keeps the receiver alive.
std::shared_ptr<OutputSink> sink_of(std::shared_ptr<OutputReceiver> receiver, std::size_t index);

// Reserves the resources of a request, and counts refusals in the metrics. Returns the errors of
// Admission::admit.
Result<Admission::Ticket> admit(Admission& admission, Metrics& metrics, const std::string& client,
                                Price price);

// Any thread may call the functions.
class Submission {
 public:
  explicit Submission(EngineClient& engine) : engine_(engine) {}

  Result<> submit(Request request, std::shared_ptr<OutputSink> sink);
  // Adds work that is not an engine request. `cancel` must cancel the work.
  void add(std::function<void()> cancel);

  // Cancels all work, including work that will be added later.
  bool cancel() noexcept;  // returns false if cancel() was called before
  bool cancelled() const;
  void cancel(std::size_t index);

 private:
  EngineClient& engine_;
  mutable std::mutex mutex_;  // guards all members below
  std::vector<std::function<void()>> cancels_;
  bool cancelled_ = false;
};

}  // namespace octavo
