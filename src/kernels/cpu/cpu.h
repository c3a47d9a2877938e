// Declares the operators of the CPU backend.
#pragma once

#include <algorithm>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/late_writer.h"
#include "kernels/host_device.h"
#include "kernels/ops.h"

namespace octavo::cpu {

// Host memory. The threads of `stream` convert weights when a model is loaded.
class CpuDevice final : public HostDevice {
 public:
  CpuDevice(std::string name, CpuStream& stream) : HostDevice(std::move(name)), stream_(stream) {}
  CpuStream& stream() { return stream_; }
  LateWriter& late_writer() { return late_writer_; }
  void start_late_work() override { late_writer_.start(); }
  // Matrices use `bytes` more of a mapped file. The system counts its pages as available.
  void add_mapped(std::size_t bytes) { mapped_bytes_ += bytes; }
  // Does not count memory that panels will need, and the pages of mapped matrices.
  std::size_t available_bytes() const override {
    // Panels that are written between the two calls are counted twice, not left out.
    const std::size_t used = late_writer_.unwritten_bytes() + mapped_bytes_;
    const std::size_t available = HostDevice::available_bytes();
    if (available == 0) return 0;  // unknown
    return available > used ? available - used : 1;
  }

 private:
  CpuStream& stream_;
  std::size_t mapped_bytes_ = 0;
  LateWriter late_writer_{stream_.pool().size()};
};

// Calls body(row, column, count) on all threads, for pieces of at most `most` columns. A thread processes
// several short rows. Long rows are split, because decoding may have only one row.
template <class Body>
void for_pieces(ThreadPool& pool, std::int64_t rows, std::int64_t columns, std::int64_t most, Body&& body) {
  const std::int64_t pieces = (columns + most - 1) / most;
  const std::int64_t together = std::max<std::int64_t>(1, most / std::max<std::int64_t>(1, columns));
  pool.for_ranges(rows * pieces, together, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t column = i % pieces * most;
      body(i / pieces, column, std::min(most, columns - column));
    }
  });
}

DType activation_of(DType stored);
Result<WeightPtr> prepare(Device& device, const MatrixSource& source);
std::int64_t kv_block_bytes(const KvSpec& spec);
Result<> supports(const KvSpec& spec, int q_heads);
Result<std::unique_ptr<AttentionPlan>> make_attention_plan(Device& device, const AttentionLimits& limits);
void plan_attention(Stream& stream, const AttentionShape& shape, AttentionPlan& plan);

OCTAVO_OPERATORS(OCTAVO_DECLARE_OPERATOR)
Result<> reserve_sampling(Device& device, std::int64_t rows, std::int64_t vocab);

// Writes the indices of the `most` greatest scores, sorted by index. If scores are equal, lower indices are
// kept. `order` is workspace for `count` indices.
void keep_best(float* scores, std::int64_t count, std::int32_t* order, std::int64_t most, std::int32_t* best);
// Returns the scratch bytes that a thread needs to select among `tokens` tokens.
std::size_t choice_bytes(const KvSpec& spec, std::int64_t tokens);
// attention and choose_tokens for caches with KvSpec::shared_rows (row_attention.cc).
void attend_rows(Stream& stream, const AttentionArgs& args);
void choose_entries(Stream& stream, const ChooseTokensArgs& args);
// Returns the scratch bytes that a thread needs for attend_rows() and choose_entries(), with a cache of
// limits.max_length tokens.
std::size_t row_attention_bytes(const AttentionLimits& limits, const IsaKernels& kernels);

}  // namespace octavo::cpu
