// Implements octavo_engine of the C interface: a model in this process, its unfinished requests, and their
// outputs.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "local/local_generation.h"
#include "local/local_pooling.h"
#include "local/runtime.h"
#include "octavo.h"

namespace octavo {

// An output and the memory that it points to.
struct OwnedOutput {
  std::uint64_t request = 0;
  bool last = false;
  openai::AnswerPart part;
  std::optional<std::vector<TokenId>> prompt;  // set in the first output of each choice
  std::vector<TokenLogprobs> prompt_logprobs;
  int cached_tokens = 0;
  int preemptions = 0;
  std::string error;
  RequestTimes times;
};

// Returns JSON with kv_transfer_params and num_preemptions, for octavo_details(), or "" if the output has
// neither.
std::string details_of(const OwnedOutput& output);

class LocalEngine {
 public:
  static Result<std::unique_ptr<LocalEngine>> create(const boost::json::object& options);

  // request: number that no unfinished request has.
  Result<> submit(std::uint64_t request, const boost::json::object& body, bool stream);
  // body: request for a pooling route. It gets one output, whose text is the response.
  Result<> submit_texts(std::uint64_t request, std::string_view route, const boost::json::object& body);
  void abort(std::uint64_t request);
  // Loads a LoRA adapter, or replaces the one with this name. A request selects it by this name as its
  // model.
  Result<> load_adapter(const std::string& name, const std::string& path);
  // Returns the outputs since the last call. Without outputs, waits at most timeout_ms for one.
  std::vector<OwnedOutput> wait(int timeout_ms);

  // These two functions return when the change is complete.
  Result<> sleep(int level);
  Result<> wake_up();
  // mode: "abort", "wait" or "keep".
  Result<> pause(std::string_view mode);
  // Traces engine steps to a file; see StepTrace.
  Result<> start_profile(const boost::json::object& session) {
    return runtime_->service->views.steps.start(session);
  }
  Result<> stop_profile() { return runtime_->service->views.steps.stop(); }
  std::string metrics() const;

  EngineClient& engine() const { return *runtime_->engine; }
  const Tokenizer& tokenizer() const { return *runtime_->tokenizer; }
  const std::string& info() const { return info_; }

 private:
  struct Progress {
    OwnedOutput pending{};  // has arrived, but wait() has not returned it
    bool begun = false;
    bool ended = false;
    int tokens = 0;
    std::int64_t last_output_us = 0;  // 0: no output with tokens yet
  };
  struct Active {
    GenerationPlan plan;
    std::vector<TokenId> prompt;
    bool stream;
    std::optional<LocalGeneration> generation{};
    std::vector<Progress> answers{};
  };

  struct Reading {
    std::optional<std::vector<TokenId>> prompt;  // set if the request has exactly one text
    LocalPooling pooling;
  };

  LocalEngine(std::unique_ptr<Runtime> runtime, bool sleep_mode);
  Result<> is_new(std::uint64_t request) const;
  void take(Arrivals::Arrival arrival, std::vector<OwnedOutput>& out);
  void take_text(Arrivals::Arrival arrival, std::vector<OwnedOutput>& out);
  // Updates the metrics.
  void measure(const Active& active, Progress& answer, const Arrivals::Arrival& arrival);
  void measure_end(const Active& active, const Progress& answer, int engine, std::int64_t at_us);

  Arrivals arrivals_;
  std::unique_ptr<Runtime> runtime_;
  const bool sleep_mode_;
  std::string info_;
  std::mutex waiting_;  // locked during wait()
  std::mutex mutex_;    // guards the members below
  std::map<std::uint64_t, Active> active_;
  std::map<std::uint64_t, Reading> reading_;
};

}  // namespace octavo
