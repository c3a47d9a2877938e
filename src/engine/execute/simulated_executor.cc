#include "engine/execute/simulated_executor.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"

namespace octavo {

TokenId SimulatedExecutor::next(std::span<const TokenId> tokens, int vocab_size) {
  const Hash128 h = hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(tokens), 0);
  return static_cast<TokenId>(h.low % static_cast<std::uint64_t>(vocab_size));
}

TokenId SimulatedExecutor::allowed_from(TokenId token, std::span<const std::int32_t> mask, int vocab_size) {
  if (mask.empty()) return token;
  for (int i = 0; i < vocab_size; ++i) {
    const TokenId id = (token + i) % vocab_size;
    if (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) return id;
  }
  return -1;
}

Result<> SimulatedExecutor::forward(const Batch& batch) {
  CHECK(std::ssize(waiting_) < options_.stages, "{} steps in the stages", waiting_.size());
  options_.stages > 1 ? waiting_.push_back(batch) : compute(batch);
  return {};
}

void SimulatedExecutor::compute(const Batch& batch) {
  last_of_token_ = batch.ids;
  for (const Batch::Pending& p : batch.pending) {
    const SequenceId sequence = batch.sequences[static_cast<std::size_t>(p.sequence)];
    last_of_token_[static_cast<std::size_t>(p.token)] =
        last_sampled_.at(static_cast<std::uint64_t>(sequence));
  }
  const Batch::Group& group = batch.groups.front();
  for (std::size_t t = 0; t < last_of_token_.size(); ++t)
    slots_[static_cast<std::size_t>(group.slots[t])] = last_of_token_[t];

  next_.clear();
  owner_.clear();
  std::vector<TokenId> past;
  for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
    const std::size_t table = s * static_cast<std::size_t>(group.table_stride);
    past.clear();
    for (int position = 0; position < batch.lengths[s]; ++position) {
      const std::int32_t block =
          group.tables[table + static_cast<std::size_t>(position / options_.block_size)];
      const TokenId token =
          slots_[static_cast<std::size_t>(block * options_.block_size + position % options_.block_size)];
      CHECK(token != kNeverStored, "position {} of the sequence was never stored", position);
      past.push_back(token);
    }
    const int count = batch.query_starts[s + 1] - batch.query_starts[s];
    for (int i = 1; i <= count; ++i) {
      const auto length = static_cast<std::size_t>(batch.lengths[s] - count + i);
      next_.push_back(next(std::span(past).first(length), options_.vocab_size));
      owner_.push_back(batch.sequences[s]);
    }
  }
}

Result<> SimulatedExecutor::sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) {
  if (options_.stages > 1) {
    compute(waiting_.front());
    waiting_.pop_front();
  }
  std::vector<SampledToken>& results = sampled_.emplace_back();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto token = static_cast<std::size_t>(tokens[i]);
    SampledToken result{rows[i].forced, {}};
    if (rows[i].forced < 0) result.id = allowed_from(next_[token], rows[i].mask, options_.vocab_size);
    if (last_of_token_[token] == broken_after_) result.id = -1;
    if (rows[i].forced < 0) last_sampled_[static_cast<std::uint64_t>(owner_[token])] = result.id;
    const SamplingParams& params = rows[i].sequence->params();
    if (params.logprobs.output || params.logprobs.of_prompt())
      result.logprobs = TokenLogprobs{result.id, -1.0f, 1, {}};
    results.push_back(std::move(result));
  }
  return {};
}

Result<std::span<SampledToken>> SimulatedExecutor::collect() {
  if (failed_) return failure(ErrorCode::internal, "the simulated device failed");
  CHECK(!sampled_.empty());
  collected_ = std::move(sampled_.front());
  sampled_.pop_front();
  return std::span<SampledToken>(collected_);
}

Result<BlockFormat> SimulatedExecutor::block_format() const {
  return BlockFormat{.fingerprint = options_.fingerprint,
                     .dtype = "i32",
                     .block_size = options_.block_size,
                     .bytes = options_.block_size * static_cast<std::int64_t>(sizeof(TokenId)),
                     .planes = {{.count = 1, .token_bytes = sizeof(TokenId)}}};
}

void SimulatedExecutor::export_piece(KvLocation location, std::span<std::byte> out) const {
  std::memcpy(out.data(), &slots_[static_cast<std::size_t>(location.number * options_.block_size)],
              out.size());
}

Result<> SimulatedExecutor::release_cache() {
  std::ranges::fill(slots_, 0);
  return {};
}

void SimulatedExecutor::import_piece(KvLocation location, std::span<const std::byte> bytes) {
  std::memcpy(&slots_[static_cast<std::size_t>(location.number * options_.block_size)], bytes.data(),
              bytes.size());
}

}  // namespace octavo
