// An executor for tests that computes hashes instead of a model. It stores token ids instead of keys and
// values. The next token of a sequence is a hash of all tokens that the sequence reads through the block
// tables. So every error in blocks, tables, slots or pending ids causes a wrong token.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/execute/executor.h"

namespace octavo {

struct SimulatedExecutorOptions {
  int vocab_size = 1000;
  int block_size = 16;
  int num_blocks = 0;
  // whether forward() accepts a step before the previous step is collected, as on a GPU
  bool asynchronous = false;
  int stages = 1;  // number of pipeline stages; a step is computed when it is sampled
  std::string fingerprint = "simulated";
};

class SimulatedExecutor final : public Executor, public BlockExchange {
 public:
  explicit SimulatedExecutor(const SimulatedExecutorOptions& options)
      : options_(options),
        slots_(static_cast<std::size_t>(options.num_blocks) * static_cast<std::size_t>(options.block_size),
               kNeverStored) {}

  bool asynchronous() const override { return options_.asynchronous; }
  int stages() const override { return options_.stages; }
  Result<> forward(const Batch& batch) override;
  Result<> sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) override;
  Result<std::span<SampledToken>> collect() override;

  Result<> release_cache() override;
  BlockExchange* block_exchange() override { return this; }
  Result<BlockFormat> block_format() const override;
  void export_piece(KvLocation location, std::span<std::byte> out) const override;
  void import_piece(KvLocation location, std::span<const std::byte> bytes) override;

  static TokenId next(std::span<const TokenId> tokens, int vocab_size);
  // Returns the first allowed token from `token` on, wrapping around at the end of the vocabulary, or -1 if
  // no token is allowed. An empty mask allows all tokens.
  static TokenId allowed_from(TokenId token, std::span<const std::int32_t> mask, int vocab_size);

  // From now on, a row that follows `token` has broken logits, as after a NaN.
  void break_after(TokenId token) { broken_after_ = token; }
  // From now on, collect() returns an error, as if the device had failed.
  void fail() { failed_ = true; }

 private:
  static constexpr TokenId kNeverStored = -2;

  void compute(const Batch& batch);

  SimulatedExecutorOptions options_;
  std::deque<Batch> waiting_;
  std::vector<TokenId> slots_;          // [slot in the first cache group]: stored token
  std::vector<TokenId> next_;           // [position in the batch]: token that follows
  std::vector<TokenId> last_of_token_;  // token ids of the batch, with pending ids resolved
  std::vector<SequenceId> owner_;       // [token in the batch]: its sequence
  std::unordered_map<std::uint64_t, TokenId> last_sampled_;  // by sequence id
  std::deque<std::vector<SampledToken>> sampled_;
  std::vector<SampledToken> collected_;
  TokenId broken_after_ = -1;
  bool failed_ = false;
};

}  // namespace octavo
