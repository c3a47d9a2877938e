// Cases of `octavo bench ops` for matrix products in every format, with one token, small batches and
// prompts.
#include <algorithm>
#include <vector>

#include "base/random.h"
#include "bench/op_cases.h"

namespace octavo {
namespace {

constexpr std::int64_t kBatches[] = {1, 4, 16, 64, 512, 4096};  // rows of activations; 4096 only on devices
constexpr std::int64_t kDistinctRows = 64;                      // larger matrices repeat these rows

struct ProductFormat {
  std::string_view name;
  Encoding encoding = Encoding::plain;
  DType dtype = DType::bf16;
  std::int64_t group = 0;  // columns that share a scale; 0: the whole row
  bool rounds = false;     // x is rounded to fp8, with a scale for each `group` columns
};
constexpr ProductFormat kFormats[] = {{"bf16"},
                                      {"f16", Encoding::plain, DType::f16},
                                      {"f32", Encoding::plain, DType::f32},
                                      {"int8", Encoding::int8},
                                      {"int4 128", Encoding::int4, DType::u8, 128},
                                      {"int4 32", Encoding::int4, DType::u8, 32},
                                      {"mxfp4", Encoding::mxfp4, DType::u8, 32},
                                      {"nvfp4", Encoding::mxfp4, DType::u8, 16},
                                      {"fp8 128", Encoding::fp8, DType::f8_e4m3, 128},
                                      {"fp8 x fp8", Encoding::fp8, DType::f8_e4m3, 128, true},
                                      {"Q8_0", Encoding::q8_0},
                                      {"Q4_0", Encoding::q4_0},
                                      {"Q4_K", Encoding::q4_k},
                                      {"Q6_K", Encoding::q6_k},
                                      {"Q1_0", Encoding::q1_0}};

Arithmetic arithmetic_of(const ProductFormat& format) {
  if (format.encoding != Encoding::plain && format.encoding != Encoding::fp8) return Arithmetic::int8;
  return format.dtype == DType::f32 || format.dtype == DType::f16 ? Arithmetic::f32 : Arithmetic::bf16;
}

// Matrix rows of random bytes between 0x30 and 0x37, with which every number and every scale is a normal
// floating-point number in any format.
class RandomRows {
 public:
  RandomRows(const ProductFormat& format, std::int64_t cols) {
    const BlockShape block = block_shape(format.encoding);
    const std::int64_t row_bytes = format.encoding == Encoding::plain
                                       ? cols * static_cast<std::int64_t>(size_of(format.dtype))
                                       : cols / block.elements * block.bytes;
    bytes_.resize(static_cast<std::size_t>(kDistinctRows * row_bytes));
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<std::uint8_t>(0x30 | (random_bits(1, i) & 7));
    part_.encoding = format.encoding;
    if (format.encoding == Encoding::plain) {
      part_.values = View::of(bytes_.data(), format.dtype, {kDistinctRows, cols});
      return;
    }
    part_.values = View::of(bytes_.data(), DType::u8, {kDistinctRows, row_bytes});
    if (block.elements > 1) return;
    if (format.encoding == Encoding::int4 || format.encoding == Encoding::mxfp4)
      for (std::uint8_t& code : bytes_) code &= 15;
    const std::int64_t groups = format.group > 0 ? cols / format.group : 1;
    scales_.assign(static_cast<std::size_t>(kDistinctRows * groups), 0x1p-7f);
    part_.scales = View::of(scales_.data(), DType::f32, {kDistinctRows, groups});
    if (format.encoding != Encoding::int4) return;
    zeros_.assign(scales_.size(), 7);
    part_.zeros = View::of(zeros_.data(), DType::u8, {kDistinctRows, groups});
  }

  // Returns a matrix of `rows` rows that repeats the kDistinctRows rows.
  std::vector<MatrixPart> repeated(std::int64_t rows) const {
    std::vector<MatrixPart> parts(static_cast<std::size_t>(rows / kDistinctRows), part_);
    if (const std::int64_t rest = rows % kDistinctRows; rest > 0) {
      MatrixPart& last = parts.emplace_back(part_);
      for (View* view : {&last.values, &last.scales, &last.zeros})
        if (*view) *view = view->rows(0, rest);
    }
    return parts;
  }

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<float> scales_;
  std::vector<std::uint8_t> zeros_;
  MatrixPart part_;
};

struct Matrix {
  std::string_view name;
  std::int64_t rows, cols;
};

Result<> matrix_cases(Backend& backend, const OpShapes& shapes, const Matrix& matrix,
                      const ProductFormat& format, const OpVisitor& visitor) {
  if (format.rounds && !backend.ops.has(Need::fp8_activations)) return {};
  std::vector<WeightPtr> copies;
  for (const std::int64_t m : kBatches) {
    // Logits are computed only for the last token of a prompt.
    if (m > 64 && matrix.rows == shapes.vocab) continue;
    if (m > 512 && !backend.stream->asynchronous()) continue;
    OpCase c{.operation = fmt::format("matmul {} {}", shapes.name, matrix.name),
             .shape = fmt::format("{} x {} x {}", m, matrix.cols, matrix.rows),
             .format = std::string(format.name),
             .calls = 1,
             .bytes = 0,
             .operations = 2.0 * static_cast<double>(m * matrix.rows * matrix.cols),
             .arithmetic = arithmetic_of(format)};
    if (!visitor.wanted(c)) continue;
    if (copies.empty()) {
      const RandomRows rows(format, matrix.cols);
      const std::vector<MatrixPart> parts = rows.repeated(matrix.rows);
      const bool plain = format.encoding == Encoding::plain;
      const DType activation = plain ? backend.ops.activation(format.dtype) : DType::bf16;
      do {
        auto prepared =
            backend.ops.prepare(*backend.device, {.parts = parts,
                                                  .activation = activation,
                                                  .rounding = {.group = format.rounds ? format.group : 0}});
        if (!prepared && prepared.error().code == ErrorCode::unsupported) return {};
        TRY(copies.emplace_back(), std::move(prepared));
      } while (static_cast<double>(copies.size() * copies[0]->bytes()) < visitor.cold_bytes);
    }
    const DType act = copies[0]->activation();
    // The bytes 0x3d give numbers near 0.05.
    TRY(const Buffer x,
        on_device(backend,
                  std::vector<std::uint8_t>(static_cast<std::size_t>(m * matrix.cols) * size_of(act), 0x3d)));
    TRY(const Buffer y, backend.device->allocate(static_cast<std::size_t>(m * matrix.rows) * sizeof(float)));
    // A single call with many rows takes long enough for the host's clock.
    const bool many = m > 64 && !backend.stream->asynchronous();
    c.calls = static_cast<int>(many ? 1 : copies.size());
    c.bytes = static_cast<double>(copies[0]->bytes());
    c.run = [&] {
      for (std::size_t i = 0; i < static_cast<std::size_t>(c.calls); ++i)
        backend.ops.matmul(
            *backend.stream,
            {.x = x.view(act, {m, matrix.cols}), .w = *copies[i], .y = y.view(DType::f32, {m, matrix.rows})});
    };
    visitor.measure(c);
  }
  return {};
}

}  // namespace

Result<> product_cases(Backend& backend, const OpShapes& s, const OpVisitor& visitor) {
  const Matrix matrices[] = {{"qkv", (s.q_heads + 2 * s.kv_heads) * s.head_dim, s.dim},
                             {"out", s.dim, s.q_heads * s.head_dim},
                             {"gate_up", 2 * s.hidden, s.dim},
                             {"down", s.dim, s.hidden},
                             {"lm_head", s.vocab, s.dim}};
  for (const Matrix& matrix : matrices)
    for (const ProductFormat& format : kFormats) TRY_VOID(matrix_cases(backend, s, matrix, format, visitor));
  return {};
}

}  // namespace octavo
