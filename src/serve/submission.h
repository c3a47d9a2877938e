// The engine's requests of one HTTP request.
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
  // On the engine's thread. index: of the prompt.
  virtual void deliver(std::size_t index, Output&& output) noexcept = 0;

 protected:
  ~OutputReceiver() = default;
};

// A sink that keeps the receiver alive.
std::shared_ptr<OutputSink> sink_of(std::shared_ptr<OutputReceiver> receiver, std::size_t index);

// Counts refusals. Errors: those of Admission::admit.
Result<Admission::Ticket> admit(Admission& admission, Metrics& metrics, const std::string& client,
                                Price price);

// Any thread.
class Submission {
 public:
  explicit Submission(EngineClient& engine) : engine_(engine) {}

  Result<> submit(Request request, std::shared_ptr<OutputSink> sink);
  // Work that is not a request of the engine's: how it is cancelled.
  void add(std::function<void()> cancel);

  // Cancels all work, and what is added later.
  void cancel() noexcept;
  bool cancelled() const;
  // Cancels the work that was added as the index-th.
  void cancel(std::size_t index);

 private:
  EngineClient& engine_;
  mutable std::mutex mutex_;  // guards all below
  std::vector<std::function<void()>> cancels_;
  bool cancelled_ = false;
};

}  // namespace octavo
