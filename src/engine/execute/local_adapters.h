// The LoRA adapters in a LocalExecutor's memory, and the assignment of the current step's tokens to
// adapters.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/execute/batch.h"
#include "engine/execute/decode_recordings.h"
#include "engine/execute/executor.h"
#include "engine/execute/step_plans.h"
#include "kernels/ops.h"
#include "model/adapter.h"
#include "model/model.h"

namespace octavo {

class LocalAdapters final : public AdapterSlots {
 public:
  // `slots` is the maximum number of adapters in memory; 0: adapters are disabled. `recorded` is the argument
  // of DecodeRecordings.
  LocalAdapters(const Model& model, Backend& backend, int slots, int rank_max, int recorded);

  bool enabled() const { return reader_.has_value(); }
  std::size_t slots() const { return adapters_.size(); }
  std::int64_t bytes_max() const { return reader_ ? std::ssize(adapters_) * reader_->bytes_max() : 0; }

  Result<AdapterFile> read_adapter(const std::string& path) const override { return reader_->read(path); }
  Result<> put_adapter(int slot, std::span<const AdapterFile::Change> changes) override;
  void drop_adapter(int slot) override;

  // Tokens or rows that have an adapter, sorted by adapter.
  struct Sorted {
    std::vector<const Adapter*> adapters;
    // [adapters + 1]: adapters[i] applies to the items numbers[starts[i]] to numbers[starts[i + 1] - 1]
    std::vector<std::int32_t> starts;
    std::vector<std::int32_t> numbers;
  };
  // Sorts the tokens of the step by adapter. Returns false if no token has an adapter. `recorded`: the step
  // is a CUDA graph, so the sorted adapters are all adapters in memory, also those that no token has.
  bool begin_step(const Batch& batch, bool recorded);
  const Sorted& tokens() const { return tokens_; }
  // CUDA graphs of steps with adapters. They contain the addresses of all adapters in memory.
  DecodeRecordings& recordings() { return recordings_; }
  // Sorts rows by adapter. Row i belongs to the token tokens[i] of the step. The result is valid until the
  // next call.
  const Sorted& sort_rows(std::span<const std::int32_t> tokens, const StepPlans& plans);

 private:
  void sort(Sorted& sorted, bool all) const;
  void forget_recordings();

  Backend& backend_;
  std::optional<AdapterReader> reader_;
  std::vector<Adapter> adapters_;             // [slot]
  std::vector<std::int32_t> sequence_slots_;  // [sequence]: slot of the adapter; empty: no adapters
  std::vector<std::int32_t> item_slots_;      // [item being sorted]: slot of the adapter; -1: no adapter
  Sorted tokens_, rows_;
  DecodeRecordings recordings_;
};

}  // namespace octavo
