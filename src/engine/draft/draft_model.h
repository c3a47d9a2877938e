// A drafter that uses a small model (speculative decoding: Leviathan et al., ICML 2023).
//
// The draft model has a separate paged KV cache. In each step, it first reads a limited number of new
// tokens of all sequences. Then it makes one pass for each draft token, with all sequences that have no
// unread tokens in one batch. After a draft token is rejected, only the position of the sequence moves
// back. If the cache has no free block, the sequence that has waited longest since its last draft tokens is
// evicted and is read again later. Its blocks stay cached until another sequence needs them.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/draft/draft_sampling.h"
#include "engine/draft/proposer.h"
#include "engine/execute/batch.h"
#include "engine/execute/executor.h"
#include "kv/kv_cache.h"
#include "kv/sequence_blocks.h"
#include "request/prefix_hash.h"
#include "schedule/step_plan.h"

namespace octavo {

struct DraftModelLimits {
  int block_size = 16;
  int num_blocks = 0;
  std::vector<CacheGroup> groups = {};
  PrefixHashOptions prefix_hash = {};
  int max_tokens = 0;  // maximum number of tokens in a pass; at least two for each sequence in propose()
  int max_model_len = 0;
  int vocab_size = 0;
  // true: draft tokens are sampled with the same random numbers as the output tokens. false: each draft
  // token is the most likely token.
  bool drawn = true;
};

class DraftModel final : public Proposer {
 public:
  // The executor must have a cache of num_blocks blocks, and must not be asynchronous.
  DraftModel(std::unique_ptr<Executor> executor, const DraftModelLimits& limits);

  Result<std::int64_t> propose(std::span<Draft> drafts) override;
  void end(std::uint64_t sequence, std::span<const TokenId> text, int prompt_tokens) override;

  int blocks_used() const { return cache_.pool.used(); }

 private:
  // State of the draft model for one sequence. Must not move in memory.
  struct Past {
    Past(const Draft& draft, KvCache& cache, const DraftModelLimits& limits);
    Past(const Past&) = delete;

    DraftSampling sampling;
    Hash128 identity;
    std::vector<Hash128> keys;  // keys of the full blocks that are computed
    SequenceBlocks blocks;
    int computed = 0;          // number of text tokens whose KV is in the cache
    std::vector<TokenId> fed;  // draft tokens that were computed after the text
    std::uint64_t last_use = 0;
  };
  struct Working {
    Draft* draft;
    Past* past;
    int missing;  // number of text tokens that are not computed yet
  };

  void take_up(Draft& draft);
  void find_computed(Past& past, std::span<const TokenId> text);
  void settle(Past& past, std::span<const TokenId> text);
  bool make_room(Past& past, int tokens);
  void forget_sequence(std::uint64_t sequence);
  void plan_texts();
  void plan_drafts();
  void plan(const Working& w, int first, std::span<const TokenId> tokens, bool samples);
  Result<> run();
  void take_drafts(std::span<const SampledToken> results);

  std::unique_ptr<Executor> executor_;
  DraftModelLimits limits_;
  KvCache cache_;
  PrefixHasher hasher_;
  std::unordered_map<std::uint64_t, Past> pasts_;  // by Draft::sequence
  std::uint64_t uses_ = 0;

  std::vector<Working> working_;
  StepPlan plan_;
  Batch batch_;
  std::vector<std::int32_t> row_tokens_;
  std::vector<SampleRow> rows_;
  PrefixMatch match_;              // scratch memory
  std::vector<BlockId> given_up_;  // scratch memory
};

}  // namespace octavo
