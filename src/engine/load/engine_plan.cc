#include "engine/load/engine_plan.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "base/hash.h"
#include "base/log.h"

namespace octavo {
namespace {

// Subtracts from `bytes` the memory for the states of max_num_seqs sequences and their draft tokens, at
// most half of `bytes`. If there is not enough memory, each sequence gets states for at most one draft
// token. With cross attention, the encoder input of a sequence is part of its state.
Result<> plan_states(std::int64_t state_bytes, std::int64_t& bytes, SchedulerOptions& s) {
  if (state_bytes == 0) return {};
  const std::int64_t most = bytes / 2 / state_bytes;
  const int drafts = std::min(s.draft_states, 1);
  if (most < 1 + drafts)
    return invalid("kv_cache_memory_bytes",
                   "{} bytes are too few: half of them is for recurrent states, and one sequence needs {} "
                   "bytes of states",
                   bytes, (1 + drafts) * state_bytes);
  s.draft_states = static_cast<int>(
      std::clamp<std::int64_t>(most - s.max_num_seqs, drafts, std::max(s.draft_states, drafts)));
  if (const std::int64_t room = most - s.draft_states; room < s.max_num_seqs) {
    log_warning("one sequence has {} bytes of recurrent states, so max_num_seqs is lowered from {} to {}",
                state_bytes, s.max_num_seqs, room);
    s.max_num_seqs = static_cast<int>(room);
  }
  bytes -= (s.max_num_seqs + s.draft_states) * state_bytes;
  return {};
}

// Subtracts from `bytes` the memory for the saved states of the prefix cache. It is at most the memory that
// the longest sequences need and, if there are blocks, at most a quarter of `bytes`. Without saved states,
// sequences cannot share prefixes.
void plan_saved_states(std::int64_t state_bytes, std::int64_t block_bytes, std::int64_t& bytes,
                       SchedulerOptions& s) {
  if (state_bytes == 0 || !s.enable_prefix_caching) return;
  const std::int64_t passed = std::int64_t{s.max_num_seqs} * (s.max_model_len / s.mamba_block_size);
  const std::int64_t fitting = (block_bytes > 0 ? bytes / 4 : bytes) / state_bytes;
  s.saved_states = static_cast<int>(std::min({fitting, passed, std::int64_t{1} << 16}));
  s.enable_prefix_caching = s.saved_states > 0;
  bytes -= s.saved_states * state_bytes;
  log_info("prefix cache: can save {} recurrent states of {} bytes, one every {} tokens of a prompt",
           s.saved_states, state_bytes, s.mamba_block_size);
}

// Returns the number of blocks of a model without attention. Such blocks have no bytes and only identify
// prefixes, so their number depends on the number of sequences and saved states.
std::int64_t blocks_without_bytes(const SchedulerOptions& s) {
  const int step = std::max(s.max_num_batched_tokens, s.mamba_block_size);
  return std::int64_t{s.max_num_seqs} * blocks_of_sequence(s, s.max_model_len) +
         std::int64_t{s.saved_states} * (step / s.block_size + 1);
}

Result<> plan_cache(const ModelPlanFigures& model, const MemoryFigures& figures, const EngineOptions& options,
                    SchedulerOptions& s) {
  const std::int64_t block_bytes = model.block_bytes + figures.draft_block_bytes;
  const std::int64_t cached = blocks_of_sequence(s, s.max_model_len) * block_bytes;
  MemoryPlan memory = figures.memory;
  memory.useful = s.max_num_seqs * (cached + 2 * (model.state_bytes + figures.source_bytes)) +
                  // factor 2, because states get at most half of the memory
                  2 * s.draft_states * model.state_bytes;
  std::int64_t bytes = cache_bytes(memory);
  TRY_VOID(plan_states(model.state_bytes + figures.source_bytes, bytes, s));
  plan_saved_states(model.state_bytes, block_bytes, bytes, s);
  const std::int64_t fitting = block_bytes > 0 ? bytes / block_bytes : blocks_without_bytes(s);
  const std::int64_t blocks = options.cache.num_blocks ? *options.cache.num_blocks : fitting;
  s.num_blocks = static_cast<int>(std::min<std::int64_t>(blocks, 1 << 30));
  const int longest = longest_sequence(s);
  if (longest < 2 || (options.model.max_model_len && longest < s.max_model_len))
    return invalid(
        "kv_cache_memory_bytes",
        "one sequence of max_model_len {} needs {} bytes, but {} KV blocks of {} bytes hold {} tokens: "
        "raise --kv-cache-memory-bytes or lower --max-model-len",
        s.max_model_len, cached, s.num_blocks, block_bytes, longest);
  if (longest < s.max_model_len)
    log_warning(
        "the KV cache ({} blocks) can hold {} tokens of a sequence, so max_model_len is lowered from {}",
        s.num_blocks, longest, s.max_model_len);
  s.max_model_len = longest;
  return {};
}

// Pooling models: plans one step for the uncached part of each text, so the keys and values of that part are
// needed only during the step. The +1 is for the output token, which is never computed.
void read_whole_texts(SchedulerOptions& s, bool prefixes) {
  s.enable_prefix_caching = prefixes;
  s.enable_chunked_prefill = false;
  s.long_prefill_token_threshold = 0;
  s.max_model_len += 1;
  s.max_num_batched_tokens = std::max(s.max_num_batched_tokens, s.max_model_len);
  const int blocks = s.max_num_batched_tokens / s.block_size + s.max_num_seqs;
  s.num_blocks = blocks * static_cast<int>(s.groups.size());
}

}  // namespace

SchedulerOptions plan_step(const ModelPlanFigures& model, const EngineOptions& options) {
  SchedulerOptions s{options.schedule};
  s.max_num_seqs = std::min(s.max_num_seqs, s.max_num_batched_tokens);
  s.block_size = model.layout.block_size;
  s.groups.clear();
  for (const LayerGroup& group : model.layout.groups) s.groups.push_back({group.window});
  // The scheduler plans with blocks, even without attention. Then blocks have no bytes, and a sequence
  // keeps a block for one step, because the block of the previous token identifies the prefix.
  if (model.layout.groups.empty()) s.groups.push_back({.window = 2});
  s.enable_prefix_caching = options.cache.enable_prefix_caching;
  const int blocks = (s.mamba_block_size + s.block_size - 1) / s.block_size;
  s.mamba_block_size = options.cache.mamba_block_size.value_or(blocks * s.block_size);
  s.prefix_hash = {options.cache.prefix_hash, model.hash_seed};
  s.max_model_len = model.max_model_len;
  if (options.speculation) s.max_draft_tokens = options.speculation->num_speculative_tokens;
  if (model.whole_prompts) {
    s.long_prefill_token_threshold = 0;
    s.max_num_batched_tokens = std::max(s.max_num_batched_tokens, s.max_model_len + s.max_num_seqs);
  }
  if (model.pools) read_whole_texts(s, model.caches_prefixes);
  return s;
}

Result<SchedulerOptions> plan_engine(const ModelPlanFigures& model, const MemoryFigures& memory,
                                     const EngineOptions& options) {
  SchedulerOptions s = plan_step(model, options);
  s.max_steps_in_flight = memory.steps_in_flight;
  if (model.state_bytes > 0) s.draft_states = memory.draft_states;
  if (!model.pools || s.enable_prefix_caching) TRY_VOID(plan_cache(model, memory, options, s));
  return s;
}

MemoryPlan memory_of(const EngineOptions& options, const Device& device) {
  const int processes = options.parallel.data_parallel_size * options.parallel.ranks_of_host();
  const int devices = device.devices_of_host(), sharers = (processes + devices - 1) / devices;
  return {.requested = options.cache.memory_bytes,
          .all = static_cast<std::int64_t>(device.memory_bytes()) / sharers,
          .available = static_cast<std::int64_t>(device.available_bytes()) / sharers,
          .shared_with_host = device.shares_host_memory(),
          .utilization = options.device.gpu_memory_utilization};
}

bool caches_prefixes(const EngineOptions& options, const ModelSpec& spec) {
  const bool causal = std::ranges::all_of(spec.layers, [](const LayerSpec& layer) {
    const auto* attention = std::get_if<Attention>(&layer.mixer);
    return attention != nullptr && attention->mask.causal;
  });
  return options.cache.enable_prefix_caching && options.parallel.rank_layout().size() == 1 && causal &&
         spec.head->pool == Pool::last && !spec.head->each_token;
}

bool holds_longest(const EngineOptions& options, const ModelPlanFigures& model, const MemoryPlan& memory) {
  ModelPlanFigures with_answer = model;
  with_answer.max_model_len += 1;
  with_answer.pools = false;
  MemoryPlan unlimited = memory;
  unlimited.useful = std::numeric_limits<std::int64_t>::max();
  const std::int64_t blocks =
      options.cache.num_blocks ? *options.cache.num_blocks : cache_bytes(unlimited) / model.block_bytes;
  if (blocks > blocks_of_sequence(plan_step(with_answer, options), with_answer.max_model_len)) return true;
  log_info(
      "prefix caching is off, because the KV cache would have {} blocks, which is too few for a text of {} "
      "tokens",
      blocks, model.max_model_len);
  return false;
}

}  // namespace octavo
