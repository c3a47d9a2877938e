// Proposes tokens with one head for each position of a draft, from the hidden states of the engine's own
// model: Medusa and MLP speculators (model/place_heads.h).
//
// The heads keep no state. They read the hidden state of each sequence's last token, all sequences in one
// batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/draft/draft_sampling.h"
#include "engine/draft/proposer.h"
#include "engine/execute/local_executor.h"
#include "model/place_heads.h"
#include "sample/step_memory.h"

namespace octavo {

class PlaceDrafter final : public Proposer {
 public:
  // model: executor of the engine's model, which must live longer. sequences: maximum number of sequences in
  // a step. drawn: see DraftModelOptions. Returns an error if memory does not suffice.
  static Result<std::unique_ptr<PlaceDrafter>> create(std::shared_ptr<Backend> backend,
                                                      const LocalExecutor& model,
                                                      std::unique_ptr<PlaceHeads> heads, int sequences,
                                                      bool drawn);

  Result<> read(std::span<const ComputedText> texts) override;
  Result<std::int64_t> propose(std::span<Draft> drafts) override;
  void end(std::uint64_t sequence, std::span<const TokenId>, int) override { samplings_.erase(sequence); }

 private:
  // A sequence in the last step.
  struct Read {
    std::uint64_t sequence;
    int end;           // position after its last token
    std::int32_t row;  // row of that token
  };
  // A sequence for which the heads are proposing tokens.
  struct Working {
    Draft* draft;
    const DraftSampling* sampling;
    std::int32_t row;
    TokenId last;  // token before the next position
    bool broken = false;
  };

  PlaceDrafter(std::shared_ptr<Backend> backend, const LocalExecutor& model,
               std::unique_ptr<PlaceHeads> heads, bool drawn);
  void take_up(Draft& draft);
  Result<> begin();
  Result<> draft_place(int place);
  Result<View> upload(StepMemory& memory, std::span<const std::int32_t> numbers);

  std::shared_ptr<Backend> backend_;
  const LocalExecutor& model_;
  std::unique_ptr<PlaceHeads> heads_;
  bool drawn_;
  Sampler sampler_;
  Buffer logits_;                                               // f32 [sequences, vocab]
  std::unordered_map<std::uint64_t, DraftSampling> samplings_;  // by id of the sequence

  std::vector<Read> read_;  // sequences of the last step
  std::vector<Working> working_;
  StepMemory row_memory_, id_memory_;
  std::vector<std::int32_t> numbers_;
  std::vector<SampleRow> rows_;
};

}  // namespace octavo
