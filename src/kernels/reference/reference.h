// The reference backend: all operators as plain loops in double precision, which specify the operators.
#pragma once

#include <vector>

#include "kernels/ops.h"

namespace octavo::reference {

// A matrix in row-major f32, which represents the numbers of every encoding exactly.
class ReferenceWeight final : public Weight {
 public:
  ReferenceWeight(std::int64_t rows, std::int64_t cols, const MatrixSource& source, Buffer data)
      : Weight(rows, cols, source.activation, data.bytes()),
        data_(std::move(data)),
        rounding_(source.rounding) {}
  View view() const { return data_.view(DType::f32, {rows(), cols()}); }
  const Fp8Rounding& rounding() const { return rounding_; }

 private:
  Buffer data_;
  Fp8Rounding rounding_;
};

struct ReferencePlan final : AttentionPlan {
  std::vector<std::int32_t> query_starts;
  std::vector<std::int32_t> lengths;
  std::vector<std::int32_t> block_tables;
  std::int64_t table_stride = 0;
};

double activation(Activation kind, double x);
// Computes row = norm(row). Element i of the row has the weight weight[weight_offset + i].
void normalize(const Norm& norm, std::vector<double>& row, std::int64_t weight_offset = 0);

DType activation_of(DType stored);
Result<WeightPtr> prepare(Device& device, const MatrixSource& source);
std::int64_t kv_block_bytes(const KvSpec& spec);
Result<> supports(const KvSpec& spec, int q_heads);
Result<std::unique_ptr<AttentionPlan>> make_attention_plan(Device& device, const AttentionLimits& limits);
void plan_attention(Stream& stream, const AttentionShape& shape, AttentionPlan& plan);

OCTAVO_OPERATORS(OCTAVO_DECLARE_OPERATOR)
// Computes matmul with this rounding of x, instead of the weight's.
void multiply(const MatmulArgs& args, const Fp8Rounding& rounding);
// attention and choose_tokens for caches with KvSpec::shared_rows, in row_attention.cc.
void attend_rows(Stream& stream, const AttentionArgs& args);
void choose_entries(Stream& stream, const ChooseTokensArgs& args);

}  // namespace octavo::reference
