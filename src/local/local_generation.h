// Sends generation requests to an engine in this process, without HTTP. Request bodies and responses are
// those of the server.
#pragma once

#include <boost/json/object.hpp>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "serve/generation_plan.h"
#include "serve/openai/output_processor.h"
#include "serve/service.h"

namespace octavo {

// Queue of the outputs of several requests. Requests may outlive it: their later outputs are dropped. An
// aborted request may deliver outputs after its last result was taken, so a consumer must ignore outputs of
// jobs that it does not know.
class Arrivals {
 public:
  struct Arrival {
    std::size_t job = 0;
    Output output;
    std::int64_t at_us = 0;                       // time of the delivery
    std::shared_ptr<const OutputSink> sink = {};  // through which the output arrived
  };

  // Returns a sink that adds each output to the queue, with the number of the job.
  std::shared_ptr<OutputSink> sink(std::size_t job) const;
  // Returns false if nothing arrives within wait_ms milliseconds.
  bool pop(Arrival& arrival, int wait_ms);

 private:
  class Sink;
  struct Queue {
    std::mutex mutex;
    std::condition_variable came;
    std::vector<Arrival> arrivals{};  // newest last
  };

  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::vector<Arrival> taken_;  // newest first
};

// One prompt that runs on the engine.
class LocalGeneration {
 public:
  // Submits the only prompt of the plan, and moves it out of the plan. Plan and service must outlive the
  // result.
  static Result<LocalGeneration> start(Service& service, GenerationPlan& plan, std::size_t job,
                                       Arrivals& arrivals);

  // Returns false for an output of an earlier request with the same job.
  bool owns(const Arrivals::Arrival& arrival) const { return arrival.sink == sink_; }
  openai::AnswerPart take(Output&& output);
  bool finished() const { return unfinished_ == 0; }
  void abort() const { service_->engine.abort(id_); }

  int prompt_tokens() const { return prompt_tokens_; }
  int cached_tokens() const { return cached_tokens_; }

 private:
  LocalGeneration(Service& service, const GenerationPlan& plan);

  Service* service_;
  std::shared_ptr<OutputSink> sink_;
  RequestId id_ = 0;
  std::vector<openai::OutputProcessor> processors_;
  int unfinished_;
  int prompt_tokens_;
  int cached_tokens_ = 0;
};

// Plans a body of /v1/chat/completions (with "messages") or /v1/completions. Returns an error if the body
// is invalid or has several prompts. cut_max_tokens: if max_tokens exceeds the remaining context, it is
// lowered and not an error.
Result<GenerationPlan> plan_body(const Service& service, const boost::json::object& body,
                                 bool cut_max_tokens = false);

}  // namespace octavo
