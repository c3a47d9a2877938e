// A head that proposes tokens from the hidden states of the engine's own model: a multi-token prediction
// layer (DeepSeek-V3, 2024) or EAGLE (Li et al., ICML 2024; EAGLE-3, 2025).
//
// At each position, the head reads the model's hidden state and the next token. After each step, it reads all
// tokens of the step. Its keys and values are in a separate cache that uses the block numbers of the model's
// cache, so the head shares cached prefixes. It skips sequences that need no draft tokens, and later
// continues at the beginning of a block. It makes one pass for each draft token, with all sequences in one
// batch. Passes after the first one read the head's own hidden state instead of the model's. When the model
// accepts draft tokens, the head writes their keys and values again. If the sequence has no block for draft
// tokens yet, the head uses its extra blocks.
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
  int num_blocks = 0;  // number of the model's blocks; higher block ids are the head's extra blocks
  int own_blocks = 0;  // number of extra blocks for the draft tokens of one sequence
  bool drawn = true;   // see DraftModelOptions
};

class DraftHead final : public Proposer {
 public:
  // model: executor of the engine's model, which must live longer. executor: executor of the head, with its
  // cache. tokens: see Drafter.
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
  // Part of a sequence that the head has read.
  struct Read {
    std::uint64_t sequence;
    int end;           // number of positions read
    std::int32_t row;  // row of the last token in the head's last pass
    int begin;         // position of the first token in the blocks
    std::span<const std::int32_t> blocks;
  };
  // A sequence for which the head is proposing tokens.
  struct Working {
    Draft* draft;
    const DraftSampling* sampling;
    std::int32_t row;                  // row in the head's last pass
    int begin;                         // position of the first token in the blocks
    std::vector<std::int32_t> blocks;  // the sequence's blocks, then the head's extra blocks
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
  std::unordered_map<std::uint64_t, DraftSampling> samplings_;  // by id of the sequence

  std::vector<std::int32_t> filled_;  // number of leading tokens that the head has read, per block of the
                                      // model
  std::vector<Read> read_;            // sequences of the last step
  std::vector<Working> working_;
  // batch of the current pass
  Batch batch_;
  std::vector<std::int32_t> hidden_rows_;
  std::vector<std::int32_t> row_tokens_;
  std::vector<SampleRow> rows_;
};

}  // namespace octavo
