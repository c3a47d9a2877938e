// A drafter that reads the hidden states of the target model: a multi-token prediction layer (DeepSeek-V3,
// 2024) or EAGLE (Li et al., ICML 2024; EAGLE-3, 2025).
//
// At each position, the head reads the target model's hidden state and the next token. After each step, it
// reads all tokens of the step. The head has a separate KV cache, which uses the same block numbers as the
// target model's cache, so the head shares cached prefixes. The head skips sequences that need no draft
// tokens. It can start to read such a sequence again at the beginning of a block.
//
// The head makes one pass for each draft token, with all sequences in one batch. The first pass reads
// hidden states of the target model, and later passes read hidden states of the head. When the target model
// accepts draft tokens, the head computes their keys and values again, because they came from its own
// hidden states. If a sequence has no block for the draft tokens yet, the head uses its extra blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/draft/draft_sampling.h"
#include "engine/draft/proposer.h"
#include "engine/execute/batch.h"
#include "engine/execute/local_executor.h"

namespace octavo {

struct DraftHeadLimits {
  int block_size = 16;
  int num_blocks = 0;  // blocks of the target model; higher block ids are the head's extra blocks
  int own_blocks = 0;  // extra blocks for the draft tokens of one sequence
  bool drawn = true;   // see DraftModelOptions
};

class DraftHead final : public Proposer {
 public:
  // `model` is the executor of the target model and must outlive this object. `executor` is the executor of
  // the head and has a cache. For `tokens`, see Drafter.
  DraftHead(const LocalExecutor& model, std::unique_ptr<LocalExecutor> executor,
            std::vector<std::int32_t> tokens, const DraftHeadLimits& limits)
      : model_(model),
        executor_(std::move(executor)),
        tokens_(std::move(tokens)),
        limits_(limits),
        filled_(static_cast<std::size_t>(limits.num_blocks)) {}

  void forget(std::span<const std::int32_t> blocks) override;
  Result<> read(std::span<const ComputedText> texts) override;
  Result<std::int64_t> propose(std::span<Draft> drafts) override;
  void end(std::uint64_t sequence, std::span<const TokenId>, int) override { samplings_.erase(sequence); }

 private:
  // The part of a sequence that the head has read.
  struct Read {
    std::uint64_t sequence;
    int end;           // number of positions that were read
    std::int32_t row;  // row of the last token in the head's last pass
    int begin;         // position of the first token in `blocks`
    std::span<const std::int32_t> blocks;
  };
  // A sequence that needs more draft tokens.
  struct Working {
    Draft* draft;
    const DraftSampling* sampling;
    std::int32_t row;                  // row in the head's last pass
    int begin;                         // position of the first token in `blocks`
    // blocks of the sequence, followed by those of the head's extra blocks that it uses
    std::vector<std::int32_t> blocks;
    std::int32_t next_own;             // index of the next extra block
  };

  std::size_t pass_over(const ComputedText& text);
  std::size_t first_block(const ComputedText& text, int position) const;
  void take_up(Draft& draft);
  Result<> sample();
  void take_drafts(std::span<const SampledToken> results);
  Result<> run_drafts();
  template <class Sequences>
  void lay_out_tables(const Sequences& sequences);
  void begin_batch();
  void end_sequence(std::uint64_t sequence, int length);
  Result<> run(const LocalExecutor& from);

  const LocalExecutor& model_;
  std::unique_ptr<LocalExecutor> executor_;
  std::vector<std::int32_t> tokens_;
  DraftHeadLimits limits_;
  std::unordered_map<std::uint64_t, DraftSampling> samplings_;  // by Draft::sequence

  // [block]: number of leading tokens that the head has read
  std::vector<std::int32_t> filled_;
  std::vector<Read> read_;  // sequences of the last step
  std::vector<Working> working_;
  Batch batch_;
  std::vector<std::int32_t> hidden_rows_;
  std::vector<std::int32_t> row_tokens_;
  std::vector<SampleRow> rows_;
};

}  // namespace octavo
