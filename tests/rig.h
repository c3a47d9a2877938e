// Runs requests on a real engine (by default with the demo model), and records outputs exactly.
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

// One output, with the bits of its logprobs.
struct Transcript {
  std::vector<TokenId> tokens;
  // For each prompt position, then for each output token: id, bits of the logprob, rank, then id and bits
  // of each top logprob.
  std::vector<std::uint32_t> logprobs;
  FinishReason finished = FinishReason::error;
  std::optional<TokenId> stop_token;

  bool operator==(const Transcript&) const = default;
};

using Answers = std::vector<Transcript>;  // the n outputs of a request

inline constexpr const char* kDemoModel = "models/demo";

struct RigOptions {
  std::string model = kDemoModel;
  std::optional<CpuIsa> isa = {};  // nullopt: the best one
  int threads = 1;
  ModelDType dtype = ModelDType::automatic;
  std::optional<DType> cache_dtype = {};  // nullopt: data type of the activations
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

// A submitted request. wait() returns its outputs when all have ended.
class Ticket final : public OutputSink {
 public:
  explicit Ticket(int n) : answers_(static_cast<std::size_t>(n)), unfinished_(n) {}
  void deliver(Output&& output) noexcept override;
  Answers wait();
  bool started();  // a token has arrived

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
  // Sends all requests at once. Returns the outputs in the same order.
  std::vector<Answers> run(const std::vector<Request>& requests);
  // The same, but the first step begins when the engine has all requests.
  std::vector<Answers> run_paused(const std::vector<Request>& requests);
  // Sends one request after another, and each of the n choices as a separate request.
  std::vector<Answers> run_alone(const std::vector<Request>& requests);

  Engine& engine() { return *engine_; }
  // Waits at most a minute until no request is unfinished and no block is in use.
  EngineStats idle_stats();

 private:
  std::unique_ptr<Engine> engine_;
};

// Limits of random_requests().
inline constexpr int kPromptTokensMax = 400;
inline constexpr int kOutputTokensMax = 24;

// Returns requests of all kinds: prompts of 1 to kPromptTokensMax tokens, which the model itself has
// written, many with a common prefix; greedy and seeded; filters, penalties, biases, bans, logprobs, stop
// tokens, n > 1. The result only depends on the seed and the model.
std::vector<Request> random_requests(Rig& rig, int count, std::uint32_t seed);

// Sends all requests at once. Returns the outputs in the same order.
std::vector<Answers> answers_of(Engine& engine, const std::vector<Request>& requests);

// Limits of requests for other models.
struct RequestLimits {
  int vocab = 0;
  int prompt_tokens = kPromptTokensMax;
};
std::vector<Request> random_requests(Engine& engine, const RequestLimits& limits, int count, std::uint32_t seed);

}  // namespace octavo
