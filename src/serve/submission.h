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
  // Called on the engine's thread. index: the prompt's.
  virtual void deliver(std::size_t index, Output&& output) noexcept = 0;

 protected:
  ~OutputReceiver() = default;
};

// A sink that keeps the receiver alive.
std::shared_ptr<OutputSink> sink_of(std::shared_ptr<OutputReceiver> receiver, std::size_t index);

// Counts refusals in the metrics. Errors as in Admission::admit.
Result<Admission::Ticket> admit(Admission& admission, Metrics& metrics, const std::string& client,
                                Price price);

// Any thread.
class Submission {
 public:
  explicit Submission(EngineClient& engine) : engine_(engine) {}

  Result<> submit(Request request, std::shared_ptr<OutputSink> sink);
  // Adds other work, by the function that cancels it.
  void add(std::function<void()> cancel);

  // Cancels all work, including work that is added later.
  void cancel() noexcept;
  bool cancelled() const;
  // Cancels the index-th work.
  void cancel(std::size_t index);

 private:
  EngineClient& engine_;
  mutable std::mutex mutex_;  // guards all below
  std::vector<std::function<void()>> cancels_;
  bool cancelled_ = false;
};

}  // namespace octavo
