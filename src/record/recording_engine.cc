#include "record/recording_engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/out_of_memory.h"
#include "base/random.h"

namespace octavo {
namespace {

std::int64_t us_since_1970() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Removes unprintable characters from a client's request id, so that the record is valid UTF-8.
std::string printable(std::string id) {
  std::erase_if(id, [](char c) { return c < 0x20 || c > 0x7e; });
  return id;
}

}  // namespace

// Records the outputs of one request and passes them to the client's sink.
class RecordingEngine::Sink final : public OutputSink {
 public:
  Sink(RecordingEngine& engine, Record record, int answers, std::shared_ptr<OutputSink> next)
      : engine_(engine), record_(std::move(record)), unfinished_(answers), next_(std::move(next)) {}

  void deliver(Output&& output) noexcept override {
    const Result<> noted = within_memory([&]() -> Result<> {
      add_output(output, record_.answers);
      if (output.finished && --unfinished_ == 0 && !lost_) end();
      return {};
    });
    if (!noted && !std::exchange(lost_, true)) engine_.log_->drop(RecordDrop::queue);
    next_->deliver(std::move(output));
  }

 private:
  void end() {
    if (engine_.identity() != record_.engine) record_.engine.weights = "changed during the request";
    engine_.log_->add(std::move(record_));
  }

  RecordingEngine& engine_;
  Record record_;
  int unfinished_;
  bool lost_ = false;  // whether memory for the record could not be allocated
  const std::shared_ptr<OutputSink> next_;
};

RecordingEngine::RecordingEngine(std::unique_ptr<EngineClient> engine, std::unique_ptr<RecordLog> log,
                                 RecordedEngine recorded)
    : recorded_(std::move(recorded)),
      log_(std::move(log)),
      identity_(recorded_.identity),
      engine_(std::move(engine)) {}

RecordingEngine::~RecordingEngine() = default;

EngineIdentity RecordingEngine::identity() const {
  const std::lock_guard lock(mutex_);
  return identity_;
}

Result<RequestId> RecordingEngine::submit(Request request, std::shared_ptr<OutputSink> sink) {
  Record record{.id = printable(request.name),
                .arrived_us = us_since_1970(),
                .prompt_tokens = std::ssize(request.prompt)};
  {
    const std::lock_guard lock(mutex_);
    record.engine = identity_;
    if (!request.entropy) request.entropy = random_bits(recorded_.seed, ++submitted_);
    const auto adapter = adapters_.find(request.identity.adapter);
    if (adapter != adapters_.end()) record.adapter = adapter->second;
  }
  record.request = recorded_request(request, recorded_.media);
  const int answers = request.answers();
  return engine_->submit(std::move(request),
                         std::make_shared<Sink>(*this, std::move(record), answers, std::move(sink)));
}

void RecordingEngine::load_adapter(AdapterSource source, AdapterDone done) {
  std::string hash = recorded_.adapter_of(source.path);
  {
    const std::lock_guard lock(mutex_);
    adapters_[source.name] = std::move(hash);
  }
  engine_->load_adapter(std::move(source), std::move(done));
}

void RecordingEngine::set_weights(std::string weights) {
  const std::lock_guard lock(mutex_);
  identity_.weights = std::move(weights);
}

// Records contain "reloaded PATH" instead of a fingerprint of the new weights, because reading the weights
// again takes seconds and would delay answers.
void RecordingEngine::reload_weights(std::string path, Done done) {
  std::string before = identity().weights;
  set_weights("reloading");
  engine_->reload_weights(path, [this, path, before, done = std::move(done)](Result<> result) {
    set_weights(result ? "reloaded " + path : before);
    done(std::move(result));
  });
}

}  // namespace octavo
