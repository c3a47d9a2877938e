// Samples one token for each row of a step's logits. The sampler packs the sampling parameters of all
// sequences into the arguments of the sample operator, runs the operator, and reads the result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/ops.h"
#include "request/request.h"
#include "sample/sequence_sampling.h"
#include "sample/step_memory.h"

namespace octavo {

struct SampleRow {
  const SequenceSampling* sequence = nullptr;
  // Output tokens so far, and the draft tokens between them and the token that this row samples. Penalties
  // and bans read both. The random number depends only on the seed and on output.size() + drafts.size().
  std::span<const TokenId> output;
  std::span<const TokenId> drafts = {};
  // -1: sample a token. Otherwise the row does not sample: it reports the logprob of this token id, which
  // is the next token of the prompt (prompt_logprobs).
  TokenId forced = -1;
  // With `forced`: token ids to report instead of the most likely tokens. -1 is padding, with logprob
  // -infinity. Empty: the most likely tokens are reported.
  std::span<const TokenId> listed = {};
  // Grammar mask with one bit per token id; 1: allowed. Empty: all tokens are allowed.
  std::span<const std::int32_t> mask = {};
};

struct SampledToken {
  TokenId id = -1;  // -1: the logits are broken (NaN or infinite), or no token is allowed
  std::optional<TokenLogprobs> logprobs;  // nullopt: not requested, or out of memory
};

struct SamplerOptions {
  // true: logprobs after penalties and other processing; false: logprobs of the model
  bool processed_logprobs = false;
};

// Call reserve() once, then launch() and collect() for each step. Memory for optional parameters (masks,
// biases, histories, reports) grows to the size that the largest step needs, and never shrinks.
class Sampler {
 public:
  Sampler(Backend& backend, const SamplerOptions& options) : backend_(backend), options_(options) {}

  // Reserves device memory for steps of at most `rows` rows. Returns an error if there is not enough device
  // memory.
  Result<> reserve(std::int64_t rows, std::int64_t vocab) {
    return backend_.ops.reserve_sampling(*backend_.device, rows, vocab);
  }

  // Enqueues all work on the backend's stream. `logits` is f32 [rows, vocab] on the device and is
  // overwritten; row i belongs to rows[i]. Returns an error if there is not enough device memory.
  Result<> launch(const View& logits, std::span<const SampleRow> rows);

  // Returns the sampled tokens, i32 [rows] on the device, as input of later operators on the stream. The
  // view is valid until the next launch().
  View ids() const { return out_.device(outputs_.id); }

  // Waits for the launched step, but not for later work on the stream. Returns one result per row, valid
  // until the next launch().
  std::span<SampledToken> collect();

 private:
  struct Inputs {
    Part<DrawRule> rules;
    Part<std::int32_t> history_starts, history_ids, history_counts, bias_starts, bias_ids;
    Part<float> bias_values;
    Part<std::int32_t> masks, reported_starts, reported_ids;
  };
  struct Outputs {
    Part<std::int32_t> id, rank, top_ids;
    Part<float> logprob, top_logprobs;
    std::size_t columns = 0;  // number of columns of top_ids and top_logprobs
  };

  void lay_out(std::span<const SampleRow> rows, std::size_t vocab);
  void pack(std::span<const SampleRow> rows, std::size_t vocab);
  void pack_history(std::span<const SampleRow> rows);
  void pack_bias(std::span<const SampleRow> rows);
  void pack_masks(std::span<const SampleRow> rows, std::size_t words);
  void pack_reports(std::span<const SampleRow> rows, std::size_t vocab);
  SampleArgs arguments(const View& logits) const;

  Backend& backend_;
  SamplerOptions options_;
  StepMemory in_, out_;
  Inputs inputs_;
  Outputs outputs_;
  Stream::Mark launched_ = 0;
  std::vector<TokenId> bans_;
  std::vector<SampledToken> results_;
};

}  // namespace octavo
