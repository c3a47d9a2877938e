// The CPU backend's operators.
#pragma once

#include <algorithm>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/host_device.h"
#include "kernels/ops.h"

namespace octavo::cpu {

// Host memory, and the stream whose threads lay weights out.
class CpuDevice final : public HostDevice {
 public:
  CpuDevice(std::string name, CpuStream& stream) : HostDevice(std::move(name)), stream_(stream) {}
  CpuStream& stream() { return stream_; }

 private:
  CpuStream& stream_;
};

// Calls body(row, column, count) for pieces of all rows, `most` columns or what is left of a row, on all
// threads; of shorter rows a thread takes several. Single rows, too, are worth it: decoding has no more.
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

void embed(Stream& stream, const EmbedArgs& args);
void add_norm(Stream& stream, const AddNormArgs& args);
void matmul(Stream& stream, const MatmulArgs& args);
void activate(Stream& stream, const ActivateArgs& args);
void keep_tail(Stream& stream, const KeepTailArgs& args);
void scale_rows(Stream& stream, const ScaleRowsArgs& args);
void clamp(Stream& stream, const ClampArgs& args);
void route(Stream& stream, const RouteArgs& args);
void grouped_matmul(Stream& stream, const GroupedMatmulArgs& args);
void combine(Stream& stream, const CombineArgs& args);
void add_rows(Stream& stream, const AddRowsArgs& args);
void angles(Stream& stream, const AnglesArgs& args);
void qkv_store(Stream& stream, const QkvStoreArgs& args);
void head_matmul(Stream& stream, const HeadMatmulArgs& args);
void latent_store(Stream& stream, const LatentStoreArgs& args);
void choose_tokens(Stream& stream, const ChooseTokensArgs& args);
// The numbers of the `most` greatest of more scores, ascending; of equal ones the first. order: room for `count`.
void keep_best(float* scores, std::int64_t count, std::int32_t* order, std::int64_t most, std::int32_t* best);
// Working memory of a thread that chooses among so many tokens.
std::size_t choice_bytes(const KvSpec& spec, std::int64_t tokens);
void attention(Stream& stream, const AttentionArgs& args);
// These two, of caches with KvSpec::shared_rows: row_attention.cc.
void attend_rows(Stream& stream, const AttentionArgs& args);
void choose_entries(Stream& stream, const ChooseTokensArgs& args);
// Working memory of a thread for either, in a cache of so many tokens.
std::size_t row_attention_bytes(const AttentionLimits& limits, const IsaKernels& kernels);
void turn_ends(Stream& stream, const TurnEndsArgs& args);
void store_rows(Stream& stream, const StoreRowsArgs& args);
void gate(Stream& stream, const GateArgs& args);
void causal_conv(Stream& stream, const ConvArgs& args);
void gated_delta(Stream& stream, const GatedDeltaArgs& args);
void scan(Stream& stream, const ScanArgs& args);
void channel_scan(Stream& stream, const ChannelScanArgs& args);
void wkv(Stream& stream, const WkvArgs& args);
void compress(Stream& stream, const CompressArgs& args);
void collapse_streams(Stream& stream, const CollapseStreamsArgs& args);
void expand_streams(Stream& stream, const ExpandStreamsArgs& args);
void predict_streams(Stream& stream, const PredictStreamsArgs& args);
void correct_streams(Stream& stream, const CorrectStreamsArgs& args);
void match_size(Stream& stream, const MatchSizeArgs& args);
void gather_rows(Stream& stream, const GatherRowsArgs& args);
void pool(Stream& stream, const PoolArgs& args);
void scale_logits(Stream& stream, const ScaleLogitsArgs& args);

}  // namespace octavo::cpu
