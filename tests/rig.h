// The shipped model in a real engine with configurable options, and exact records of its answers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/draft/options.h"
#include "engine/loop/engine.h"
#include "kernels/backends.h"
#include "model/model.h"

namespace octavo {

// One answer, with the bits of its numbers.
struct Transcript {
  std::vector<TokenId> tokens;
  // Numbers of the prompt's positions, then of the output tokens: id, bits of the logprob, rank, then id and
  // logprob of each list entry.
  std::vector<std::uint32_t> logprobs;
  FinishReason finished = FinishReason::error;
  std::optional<TokenId> stop_token;

  bool operator==(const Transcript&) const = default;
};

using Answers = std::vector<Transcript>;  // the n answers to a request

inline constexpr const char* kDemoModel = "models/demo";

struct RigOptions {
  std::string model = kDemoModel;
  std::optional<CpuIsa> isa = {};  // nullopt: the best instruction set
  int threads = 1;
  ModelDType dtype = ModelDType::automatic;
  std::optional<DType> cache_dtype = {};  // nullopt: format of the activations
  Encoding quantization = Encoding::plain;

  int num_blocks = 4096;
  int block_size = 16;
  bool prefix_caching = true;
  int max_num_batched_tokens = 2048;
  int max_num_seqs = 64;
  int long_prefill_token_threshold = 0;
  Policy policy = Policy::fcfs;
  std::optional<SpeculativeOptions> speculation = {};
};

// A submitted request; wait() returns its answers when all have ended.
class Ticket final : public OutputSink {
 public:
  explicit Ticket(int n) : answers_(static_cast<std::size_t>(n)), unfinished_(n) {}
  void deliver(Output&& output) noexcept override;
  Answers wait();
  bool started();  // returns whether a token has arrived

  RequestId id = 0;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  Answers answers_;
  std::vector<std::vector<std::uint32_t>> prompt_logprobs_{answers_.size()};
  int unfinished_;
  bool started_ = false;
};

class Rig {
 public:
  explicit Rig(const RigOptions& options);

  std::shared_ptr<Ticket> submit(const Request& request);
  // Sends all requests without waiting. Returns their answers in the order of the requests.
  std::vector<Answers> run(const std::vector<Request>& requests);
  // Sends the requests one after the other, each of the n choices as a separate request.
  std::vector<Answers> run_alone(const std::vector<Request>& requests);

  Engine& engine() { return *engine_; }
  // Waits until no request is unfinished and no block is used, for at most a minute, and returns the
  // statistics.
  EngineStats idle_stats();

 private:
  std::unique_ptr<Engine> engine_;
};

// Maximum numbers of prompt tokens and of output tokens of a request from random_requests.
inline constexpr int kPromptTokensMax = 400;
inline constexpr int kOutputTokensMax = 24;

// Returns requests of all kinds over texts that the model itself has generated: prompts of 1 to
// kPromptTokensMax tokens, many with a common prefix, greedy and seeded, with filters, penalties, biases,
// bans, logprobs, stop tokens, n > 1. The result depends only on the seed and the model.
std::vector<Request> random_requests(Rig& rig, int count, std::uint32_t seed);

// Sends all requests to an engine without waiting. Returns their answers in the order of the requests.
std::vector<Answers> answers_of(Engine& engine, const std::vector<Request>& requests);

// Limits of requests for other models: vocabulary, and maximum number of prompt tokens.
struct RequestLimits {
  int vocab = 0;
  int prompt_tokens = kPromptTokensMax;
};
std::vector<Request> random_requests(Engine& engine, const RequestLimits& limits, int count, std::uint32_t seed);

}  // namespace octavo
