#include "schedule/options.h"

#include <algorithm>

#include "request/engine_stats.h"

namespace octavo {
namespace {

Result<> in_range(std::string_view field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  return invalid(field, "{} is {}, but must be from {} to {}", field, value, low, high);
}

}  // namespace

Result<> validate(const SchedulerOptions& options) {
  constexpr int kTokensMax = 1 << 28;
  TRY_VOID(in_range("block_size", options.block_size, 1, kBlockSizeMax));
  TRY_VOID(in_range("num_blocks", options.num_blocks, 1, kTokensMax / options.block_size));
  TRY_VOID(in_range("max_model_len", options.max_model_len, 2, kTokensMax));
  TRY_VOID(in_range("max_num_seqs", options.max_num_seqs, 1, 1 << 16));
  TRY_VOID(in_range("max_sequences", options.max_sequences, options.max_num_seqs, 1 << 24));
  TRY_VOID(
      in_range("max_num_batched_tokens", options.max_num_batched_tokens, options.max_num_seqs, kTokensMax));
  TRY_VOID(in_range("long_prefill_token_threshold", options.long_prefill_token_threshold, 0, kTokensMax));
  TRY_VOID(in_range("max_steps_in_flight", options.max_steps_in_flight, 1, 16));
  TRY_VOID(in_range("max_draft_tokens", options.max_draft_tokens, 0, kDraftTokensMax));
  TRY_VOID(in_range("max_preemptions", options.max_preemptions, 0, 1 << 16));
  TRY_VOID(in_range("saved_states", options.saved_states, 0, options.enable_prefix_caching ? 1 << 20 : 0));
  TRY_VOID(in_range("draft_states", options.draft_states, 0, 1 << 20));
  TRY_VOID(in_range("mamba_block_size", options.mamba_block_size, 1, kTokensMax));
  if (options.saved_states > 0 && options.mamba_block_size % options.block_size != 0)
    return invalid("mamba_block_size", "must be a multiple of block_size, {}, got {}", options.block_size,
                   options.mamba_block_size);
  TRY_VOID(in_range("groups", static_cast<std::int64_t>(options.groups.size()), 1, 64));
  for (const CacheGroup& group : options.groups) TRY_VOID(in_range("window", group.window, 0, kTokensMax));
  if (!(options.watermark >= 0 && options.watermark < 1))
    return invalid("watermark", "must be at least 0 and below 1, got {}", options.watermark);
  if (!options.enable_chunked_prefill) {
    TRY_VOID(in_range("max_num_batched_tokens (without chunked prefill)", options.max_num_batched_tokens,
                      options.max_model_len, kTokensMax));
    TRY_VOID(in_range("long_prefill_token_threshold (without chunked prefill)",
                      options.long_prefill_token_threshold, 0, 0));
  }
  return {};
}

int tokens_ahead_max(const SchedulerOptions& options) {
  const int threshold = options.long_prefill_token_threshold;
  const int step =
      threshold == 0 ? options.max_num_batched_tokens : std::min(threshold, options.max_num_batched_tokens);
  const std::int64_t ahead =
      std::int64_t{std::min(step, options.max_model_len)} * options.max_steps_in_flight;
  return static_cast<int>(std::min<std::int64_t>(options.max_model_len, ahead));
}

int blocks_of_sequence(const SchedulerOptions& options, int tokens) {
  const KvCache shape(1, options.block_size, options.groups);
  // `tokens - 1`: the last token of a sequence is never computed, because no token follows it.
  return shape.peak_blocks(tokens - 1, tokens_ahead_max(options));
}

int longest_sequence(SchedulerOptions options) {
  int fits = 0;
  for (int low = 2, high = options.max_model_len; low <= high;) {
    const int middle = low + (high - low) / 2;
    options.max_model_len = middle;
    if (blocks_of_sequence(options, middle) <= options.num_blocks) {
      fits = middle;
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return fits;
}

}  // namespace octavo
