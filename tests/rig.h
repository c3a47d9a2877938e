// The shipped model behind a real engine whose every option can be chosen, and exact records of its answers.
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

// One answer, bit for bit.
struct Transcript {
  std::vector<TokenId> tokens;
  // For the prompt's positions, then for the tokens: id, logprob (its bits), rank, then id and logprob of
  // each list entry.
  std::vector<std::uint32_t> logprobs;
  FinishReason finished = FinishReason::error;
  std::optional<TokenId> stop_token;

  bool operator==(const Transcript&) const = default;
};

using Answers = std::vector<Transcript>;  // the n of a request

inline constexpr const char* kDemoModel = "models/demo";

struct RigOptions {
  std::string model = kDemoModel;
  std::optional<CpuIsa> isa = {};  // nullopt: the best
  int threads = 1;
  ModelDType dtype = ModelDType::automatic;
  std::optional<DType> cache_dtype = {};  // nullopt: as the activations
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

// A request on its way: wait() gives its answers when all have ended.
class Ticket final : public OutputSink {
 public:
  explicit Ticket(int n) : answers_(static_cast<std::size_t>(n)), unfinished_(n) {}
  void deliver(Output&& output) noexcept override;
  Answers wait();
  bool started();  // whether a token has come

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
  // All requests at once; the answers in their order.
  std::vector<Answers> run(const std::vector<Request>& requests);
  // One after the other, each of its n choices as a separate request.
  std::vector<Answers> run_alone(const std::vector<Request>& requests);

  Engine& engine() { return *engine_; }
  // The figures once nothing is unfinished and no block used; what they are after a minute otherwise.
  EngineStats idle_stats();

 private:
  std::unique_ptr<Engine> engine_;
};

// The greatest length of prompt and answer together that random_requests asks for.
inline constexpr int kPromptTokensMax = 400;
inline constexpr int kOutputTokensMax = 24;

// Requests of all kinds over texts that the model wrote itself: prompts of 1 to kPromptTokensMax tokens, many
// with a common beginning, greedy and seeded, with filters, penalties, biases, bans, log-probabilities, stop
// tokens, n > 1. The same for the same seed and the same model.
std::vector<Request> random_requests(Rig& rig, int count, std::uint32_t seed);

// All at once, by any engine; the answers in their order.
std::vector<Answers> answers_of(Engine& engine, const std::vector<Request>& requests);

// For another vocabulary, with a limit on the prompt's tokens.
struct RequestLimits {
  int vocab = 0;
  int prompt_tokens = kPromptTokensMax;
};
std::vector<Request> random_requests(Engine& engine, const RequestLimits& limits, int count, std::uint32_t seed);

}  // namespace octavo
