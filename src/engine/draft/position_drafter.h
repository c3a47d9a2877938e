// A drafter with one head for each position of a draft, Medusa or an MLP speculator (model/position_heads.h).
// The heads keep no state: they read the target model's hidden state at the last token of each sequence,
// with all sequences in one batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/draft/draft_sampling.h"
#include "engine/draft/proposer.h"
#include "engine/execute/local_executor.h"
#include "model/position_heads.h"
#include "sample/step_memory.h"

namespace octavo {

class PositionDrafter final : public Proposer {
 public:
  // `model` is the executor of the target model and must outlive this object. `sequences` is the maximum
  // number of sequences in a step. For `drawn`, see DraftModelOptions. Returns an error if there is not
  // enough memory.
  static Result<std::unique_ptr<PositionDrafter>> create(std::shared_ptr<Backend> backend,
                                                         const LocalExecutor& model,
                                                         std::unique_ptr<PositionHeads> heads, int sequences,
                                                         bool drawn);

  Result<> read(std::span<const ComputedText> texts) override;
  Result<std::int64_t> propose(std::span<Draft> drafts) override;
  void end(std::uint64_t sequence, std::span<const TokenId>, int) override { samplings_.erase(sequence); }

 private:
  struct Read {
    std::uint64_t sequence;
    int end;           // position after the last token
    std::int32_t row;  // row of the last token
  };
  struct Working {
    Draft* draft;
    const DraftSampling* sampling;
    std::int32_t row;
    TokenId last;  // previous token of the draft or the text
    bool broken = false;
  };

  PositionDrafter(std::shared_ptr<Backend> backend, const LocalExecutor& model,
                  std::unique_ptr<PositionHeads> heads, bool drawn);
  void take_up(Draft& draft);
  Result<> begin();
  Result<> draft_position(int position);
  Result<View> upload(StepMemory& memory, std::span<const std::int32_t> numbers);

  std::shared_ptr<Backend> backend_;
  const LocalExecutor& model_;
  std::unique_ptr<PositionHeads> heads_;
  bool drawn_;
  Sampler sampler_;
  Buffer logits_;                                               // f32 [sequences, vocab]
  std::unordered_map<std::uint64_t, DraftSampling> samplings_;  // by Draft::sequence

  std::vector<Read> read_;
  std::vector<Working> working_;
  StepMemory row_memory_, id_memory_;
  std::vector<std::int32_t> numbers_;
  std::vector<SampleRow> rows_;
};

}  // namespace octavo
