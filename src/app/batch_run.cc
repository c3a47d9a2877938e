#include "app/batch_run.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "local/local_generation.h"

namespace octavo {
namespace {

Request request_of(BatchRequest&& wanted, double temperature) {
  Request request;
  request.prompt = std::move(wanted.prompt);
  request.sampling.temperature = temperature;
  request.sampling.max_tokens = wanted.output_len;
  request.sampling.ignore_eos = true;
  return request;
}

class CountingSink final : public OutputSink {
 public:
  CountingSink(std::shared_ptr<OutputSink> ends, std::function<void()> begun)
      : ends_(std::move(ends)), begun_(std::move(begun)) {}
  void deliver(Output&& output) noexcept override {
    if (begun_) std::exchange(begun_, nullptr)();
    if (output.finished) ends_->deliver(std::move(output));
  }

 private:
  std::shared_ptr<OutputSink> ends_;
  std::function<void()> begun_;
};

}  // namespace

Result<double> run_requests(EngineClient& engine, std::vector<BatchRequest> requests, double temperature,
                            const std::function<void()>& all_begun, ProgressBar* bar) {
  Arrivals arrivals;
  // number of requests without a first token; used only on the engine's thread
  std::size_t waiting = requests.size();
  const std::int64_t started = now_us();
  std::vector<RequestId> submitted;
  std::optional<Error> failed;
  const auto fail = [&](const Error& error) {
    if (failed) return;
    failed = error;
    for (const RequestId id : submitted) engine.abort(id);
  };
  for (std::size_t i = 0; i < requests.size() && !failed; ++i) {
    const auto id = engine.submit(request_of(std::move(requests[i]), temperature),
                                  std::make_shared<CountingSink>(arrivals.sink(i), [&] {
                                    if (--waiting == 0) all_begun();
                                  }));
    id ? submitted.push_back(*id) : fail(id.error());
  }
  // After a failure, also waits for the aborted requests, because their sinks are objects of this function.
  for (std::size_t ended = 0; ended < submitted.size();) {
    Arrivals::Arrival arrival;
    if (!arrivals.pop(arrival, 1000)) continue;
    if (arrival.output.error) fail(*arrival.output.error);
    ++ended;
    if (bar != nullptr) bar->show(ended, requests.size());
  }
  if (failed) return std::unexpected(*std::move(failed));
  return static_cast<double>(now_us() - started) * 1e-6;
}

Result<double> run_batch(EngineClient& engine, const BatchShape& shape, int count, std::uint64_t& number,
                         const std::function<void()>& all_begun, ProgressBar* bar) {
  const auto vocab = static_cast<std::uint64_t>(engine.info().vocab_size);
  std::vector<BatchRequest> requests(static_cast<std::size_t>(count));
  for (BatchRequest& request : requests) {
    for (int i = 0; i < shape.prefix_len + shape.input_len; ++i) {
      const std::uint64_t seed = i < shape.prefix_len ? 0 : number;
      request.prompt.push_back(
          static_cast<TokenId>(random_bits(seed, static_cast<std::uint64_t>(i)) % vocab));
    }
    request.output_len = shape.output_len;
    ++number;
  }
  return run_requests(engine, std::move(requests), shape.temperature, all_begun, bar);
}

}  // namespace octavo
