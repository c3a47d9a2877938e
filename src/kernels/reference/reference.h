// The reference backend: the specification of every operator, in plain loops and double precision.
#pragma once

#include <vector>

#include "kernels/ops.h"

namespace octavo::reference {

// Row-major f32, which holds the numbers of every encoding exactly.
class ReferenceWeight final : public Weight {
 public:
  ReferenceWeight(std::int64_t rows, std::int64_t cols, DType activation, Buffer data)
      : Weight(rows, cols, activation, data.bytes()), data_(std::move(data)) {}
  View view() const { return data_.view(DType::f32, {rows(), cols()}); }

 private:
  Buffer data_;
};

// The step's sequences, copied.
struct ReferencePlan final : AttentionPlan {
  std::vector<std::int32_t> query_starts;
  std::vector<std::int32_t> lengths;
  std::vector<std::int32_t> block_tables;
  std::int64_t table_stride = 0;
};

// Activations of the feed-forward.
double activation(Activation kind, double x);
// row = norm(row); unit i of the row has weight[weight_offset + i].
void normalize(const Norm& norm, std::vector<double>& row, std::int64_t weight_offset = 0);

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
void attention(Stream& stream, const AttentionArgs& args);
// These two, of caches with KvSpec::shared_rows: row_attention.cc.
void attend_rows(Stream& stream, const AttentionArgs& args);
void choose_entries(Stream& stream, const ChooseTokensArgs& args);
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
void put_sampled(Stream& stream, const PutSampledArgs& args);
void scale_logits(Stream& stream, const ScaleLogitsArgs& args);
void sample(Stream& stream, const SampleArgs& args);

}  // namespace octavo::reference
