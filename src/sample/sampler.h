// From the logits of a step to one token for each row: packs what the sequences ask for into the arguments of
// the sample operator, runs it, and reads the answer.
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

// One row of logits and what to do with it.
struct SampleRow {
  const SequenceSampling* sequence = nullptr;
  // What the sequence has generated so far, and how many draft tokens come behind it in this row. Together
  // they are the position of the draw: a token depends on the seed and its place alone.
  std::span<const TokenId> output;
  int drafts = 0;
  // >= 0: report on this token, the prompt's next one, instead of choosing (prompt_logprobs).
  TokenId forced = -1;
  // Bit by token id, set = allowed, of the grammar that the answer follows; empty: all are.
  std::span<const std::int32_t> mask = {};
};

struct SampledToken {
  TokenId id = -1;  // -1: the logits are broken (NaN or infinite), or every token is banned
  std::optional<TokenLogprobs> logprobs;  // none where none are asked for, or memory for them runs out
};

struct SamplerOptions {
  bool processed_logprobs = false;  // log-probabilities after all processing instead of the model's own
};

// Reserve once; then one step at a time: launch, then collect. Memory for what requests ask for beyond a
// token (masks, biases, histories, reports) grows to what the largest step needed and stays.
class Sampler {
 public:
  Sampler(Backend& backend, const SamplerOptions& options) : backend_(backend), options_(options) {}

  // Room on the device for a step of so many rows. Error: the device has no memory left.
  Result<> reserve(std::int64_t rows, std::int64_t vocab) {
    return backend_.ops.reserve_sampling(*backend_.device, rows, vocab);
  }

  // logits: f32 [rows, vocab] on the device, overwritten; row i belongs to rows[i]. Enqueues all work on the
  // backend's stream. Errors: the device has no memory left.
  Result<> launch(const View& logits, std::span<const SampleRow> rows);

  // i32 [rows] on the device: the tokens of the launched step, for operators behind it on the stream. Until
  // the next launch.
  View ids() const { return out_.device(outputs_.id); }

  // Waits for the launched step, and not for what was enqueued behind it; one item for each of its rows, for
  // the caller to take before the next launch.
  std::span<SampledToken> collect();

 private:
  // Where each array of SampleArgs lies in the step's memory.
  struct Inputs {
    Part<float> temperature, top_p, min_p;
    Part<std::int32_t> top_k, forced, top_counts;
    Part<std::int64_t> random;
    Part<float> repetition_penalty, frequency_penalty, presence_penalty, bias_values;
    Part<std::int32_t> history_starts, history_ids, history_counts, bias_starts, bias_ids;
    Part<std::int32_t> mask_rows, masks, reported_starts, reported_ids;
  };
  struct Outputs {
    Part<std::int32_t> id, rank, top_ids;
    Part<float> logprob, top_logprobs;
    std::size_t columns = 0;  // of the top arrays
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
