// Tests every kernel with addresses of more than 32 bits. Each test runs the same work on contiguous rows,
// and on rows that are more than 2^31 elements apart. The emulator allocates only memory that is written; a
// GPU needs all of the memory.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <optional>

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/runtime.h"

namespace octavo::cuda {
namespace {

constexpr std::int64_t kFar = (std::int64_t{1} << 31) + 64;

class Memory {
 public:
  explicit Memory(std::int64_t bytes) {
    if (const auto made = runtime::allocate(static_cast<std::size_t>(bytes))) {
      data_ = *made;
    } else {
      has_room = false;
    }
  }
  ~Memory() { runtime::release(data_); }
  Memory(const Memory&) = delete;
  template <class T>
  T* at(std::int64_t element) const {
    return static_cast<T*>(data_) + element;
  }
  static inline bool has_room = true;

 private:
  void* data_ = nullptr;
};

template <class T>
constexpr DType dtype_of_type = std::is_same_v<T, float> ? DType::f32 : DType::bf16;

class CudaLargeStrides : public testing::Test {
 protected:
  void SetUp() override {
    const auto opened = runtime::open(0);
    if (!opened) GTEST_SKIP() << opened.error().message;
    Memory::has_room = true;
    own_.emplace(*opened);
    stream_ = own_->handle();
  }

  template <class T>
  void put(T* to, const std::vector<T>& items) {
    runtime::copy_to_device(stream_, to, items.data(), items.size() * sizeof(T));
    runtime::synchronize(stream_);
  }
  template <class T>
  std::vector<T> get(const T* from, std::int64_t count) {
    std::vector<T> items(static_cast<std::size_t>(count));
    runtime::copy_to_host(stream_, items.data(), from, items.size() * sizeof(T));
    runtime::synchronize(stream_);
    return items;
  }
  template <class T>
  static std::vector<T> numbers(std::int64_t count, int seed) {
    std::vector<T> list;
    for (std::int64_t i = 0; i < count; ++i) {
      const float x = static_cast<float>((i * 37 + seed * 101) % 61 - 30) / 16;
      if constexpr (std::is_same_v<T, float>) {
        list.push_back(x);
      } else {
        list.push_back(to_bf16(x).bits);
      }
    }
    return list;
  }

  // A matrix on the device. Its rows are `stride` elements apart.
  template <class T>
  struct Matrix {
    Memory memory;
    std::int64_t rows, columns, stride;
    Matrix(std::int64_t r, std::int64_t c, std::int64_t apart)
        : memory(((r - 1) * apart + c) * static_cast<std::int64_t>(sizeof(T))),
          rows(r),
          columns(c),
          stride(apart) {}
    View view() const { return {memory.at<T>(0), dtype_of_type<T>, 2, {rows, columns}, {stride, 1}}; }
    Rows plain() const { return {memory.at<T>(0), format_of(dtype_of_type<T>), stride}; }
    WeightRows weights() const {
      return {.data = memory.at<std::byte>(0),
              .format = format_of(dtype_of_type<T>),
              .stride = stride * static_cast<std::int64_t>(sizeof(T))};
    }
    // The weight refers to the memory of this object.
    CudaWeight weight() const {
      const auto keep = [](void*, std::size_t) {};
      return {rows, columns, dtype_of_type<T>, weights(), Buffer(memory.at<T>(0), 1, keep)};
    }
  };
  static View indices(const Memory& memory, std::int64_t count) {
    return View::of(memory.at<std::int32_t>(0), DType::i32, {count});
  }
  template <class T>
  void fill(const Matrix<T>& matrix, int seed) {
    for (std::int64_t row = 0; row < matrix.rows && Memory::has_room; ++row)
      put(matrix.memory.template at<T>(row * matrix.stride),
          numbers<T>(matrix.columns, seed + static_cast<int>(row)));
  }
  template <class T>
  std::vector<T> contents(const Matrix<T>& matrix) {
    std::vector<T> all;
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      const auto items = get(matrix.memory.template at<T>(row * matrix.stride), matrix.columns);
      all.insert(all.end(), items.begin(), items.end());
    }
    return all;
  }

  // Calls run(stride_of) twice. stride_of(near) returns `near` in the first call, and a large stride in the
  // second call. The results must be equal and not all zero.
  template <class Run>
  void compare(Run run) {
    const auto near = run([](std::int64_t columns) { return columns; });
    const auto far = run([](std::int64_t) { return kFar; });
    if (!Memory::has_room) GTEST_SKIP() << "not enough memory on this device";
    EXPECT_EQ(near, far);
    EXPECT_NE(near, decltype(near)(near.size()));
  }

  using Half = std::uint16_t;  // bf16
  std::optional<CudaStream> own_;
  StreamHandle stream_ = nullptr;
};

TEST_F(CudaLargeStrides, Embed) {
  compare([&](auto stride) {
    const Matrix<Half> table(2, 40, stride(40)), positions(2, 40, stride(40));
    const Matrix<float> out(2, 40, stride(40));
    const Memory ids(8), pair_rows(8);
    if (!Memory::has_room) return std::vector<float>();
    fill(table, 1);
    fill(positions, 2);
    put(ids.at<std::int32_t>(0), {1, 0});
    put(pair_rows.at<std::int32_t>(0), {1, 1});
    const CudaWeight words = table.weight(), learned = positions.weight();
    run_embed(*own_, {.ids = indices(ids, 2),
                      .table = words,
                      .scale = 2,
                      .position_table = &learned,
                      .positions = indices(pair_rows, 2),
                      .out = out.view()});
    return contents(out);
  });
}

TEST_F(CudaLargeStrides, AddNorm) {
  compare([&](auto stride) {
    const Matrix<float> residual(2, 48, stride(48)), weight(1, 48, 48);
    const Matrix<Half> delta(2, 48, stride(48)), out(2, 48, stride(48));
    if (!Memory::has_room) return std::vector<Half>();
    fill(residual, 1);
    fill(delta, 2);
    fill(weight, 3);
    const Norm norm{NormKind::layer, 1e-5f, weight.view()};
    run_add_norm(*own_, {.residual = residual.view(),
                         .delta = delta.view(),
                         .delta_scale = 0.5f,
                         .delta_norm = norm,
                         .norm = norm,
                         .out = out.view()});
    return contents(out);
  });
}

TEST_F(CudaLargeStrides, Activate) {
  compare([&](auto stride) {
    const Matrix<Half> x(2, 80, stride(80)), y(2, 40, stride(40));
    if (!Memory::has_room) return std::vector<Half>();
    fill(x, 1);
    run_activate(*own_, {.x = x.view(), .y = y.view()});
    return contents(y);
  });
}

TEST_F(CudaLargeStrides, GatherRowsAndScaleLogits) {
  compare([&](auto stride) {
    const Matrix<float> x(2, 40, stride(40)), out(2, 40, stride(40));
    const Memory rows(8);
    if (!Memory::has_room) return std::vector<float>();
    fill(x, 1);
    put(rows.at<std::int32_t>(0), {1, 0});
    run_gather_rows(*own_, {.x = x.view(), .rows = indices(rows, 2), .out = out.view()});
    run_scale_logits(*own_, {.logits = out.view(), .scale = 0.5f, .soft_cap = 30});
    return contents(out);
  });
}

TEST_F(CudaLargeStrides, PutSampled) {
  constexpr std::int64_t kLast = std::numeric_limits<std::int32_t>::max();
  const Memory ids((kLast + 1) * 4), sampled((kLast + 1) * 4), tokens(4), rows(4);
  if (!Memory::has_room) GTEST_SKIP() << "not enough memory on this device";
  put(sampled.at<std::int32_t>(kLast), {77});
  put(tokens.at<std::int32_t>(0), {static_cast<std::int32_t>(kLast)});
  put(rows.at<std::int32_t>(0), {static_cast<std::int32_t>(kLast)});
  run_put_sampled(*own_, {.ids = indices(ids, kLast + 1),
                          .tokens = indices(tokens, 1),
                          .sampled = indices(sampled, kLast + 1),
                          .rows = indices(rows, 1)});
  EXPECT_EQ(get(ids.at<std::int32_t>(kLast), 1)[0], 77);
}

// Covers products with up to 16 rows of x, and with more rows. The last row is beyond 2^31 elements.
TEST_F(CudaLargeStrides, Matmul) {
  for (const std::int64_t m : {2, 18})
    compare([&](auto stride) {
      const bool far = stride(96) == kFar;
      const std::int64_t x_stride = far ? kFar / (m - 1) / 8 * 8 + 8 : 96, y_stride = far ? x_stride : 2;
      const Matrix<Half> x(m, 96, x_stride), w(2, 96, stride(96)), y(m, 2, y_stride);
      if (!Memory::has_room) return std::vector<Half>();
      fill(x, 1);
      fill(w, 2);
      matmul(stream_, {m, 2, 96, x.plain(), w.weights(), nullptr, y.plain()});
      return contents(y);
    });
}

TEST_F(CudaLargeStrides, MatmulInSinglePrecision) {
  compare([&](auto stride) {
    const Matrix<float> x(2, 50, stride(50)), w(2, 50, stride(50)), y(2, 2, stride(2));
    if (!Memory::has_room) return std::vector<float>();
    fill(x, 1);
    fill(w, 2);
    matmul(stream_, {2, 2, 50, x.plain(), w.weights(), nullptr, y.plain()});
    return contents(y);
  });
}

// Each block has three gigabytes, as if all layers of a large model were in one block.
constexpr KvLayout kBlocks{
    .stride_bytes = std::int64_t{3} << 30, .kv_heads = 2, .head_dim = 32, .block_size = 16, .bits = 16};
constexpr KvLayout kPacked{
    .stride_bytes = kBlocks.block_bytes(), .kv_heads = 2, .head_dim = 32, .block_size = 16, .bits = 16};

TEST_F(CudaLargeStrides, QkvStore) {
  constexpr std::int64_t kWidth = (4 + 2 * 2) * 32;
  compare([&](auto stride) {
    const bool far = stride(1) == kFar;
    const KvLayout layout = far ? kBlocks : kPacked;
    const Matrix<float> cos(2, 16, stride(16)), sin(2, 16, stride(16));
    const Matrix<Half> qkv(2, kWidth, stride(kWidth)), q(2, 128, stride(128));
    const Memory cache(2 * layout.stride_bytes), slots(16);
    if (!Memory::has_room) return std::vector<Half>();
    fill(cos, 1);
    fill(sin, 2);
    fill(qkv, 3);
    put<std::int64_t>(slots.at<std::int64_t>(0), {16 + 3, 5});
    run_qkv_store(*own_, {.qkv = qkv.view(),
                          .q_heads = 4,
                          .rope = {.cos = cos.view(), .sin = sin.view(), .rotary_dim = 32},
                          .slots = View::of(slots.at<std::int64_t>(0), DType::i64, {2}),
                          .cache = {.data = cache.at<std::byte>(0),
                                    .blocks = 2,
                                    .stride_bytes = layout.stride_bytes,
                                    .spec = {.kv_heads = 2, .head_dim = 32, .dtype = DType::bf16}},
                          .q_out = q.view()});
    std::vector<Half> all = contents(q);
    for (const std::int64_t vector : {layout.vector(1, 0, 1, 3), layout.vector(1, 1, 1, 3)}) {
      const auto stored = get(reinterpret_cast<const Half*>(cache.at<std::byte>(vector)), 32);
      all.insert(all.end(), stored.begin(), stored.end());
    }
    return all;
  });
}

// Covers attention with and (in f32) without tensor cores, and sequences with and without states of pieces
// in memory.
class CudaLargeAttention : public CudaLargeStrides {
 protected:
  static constexpr int kLength = 300, kBlockCount = (kLength + 15) / 16, kDim = 32;

  // `latent` is the size of a value in latent attention; 0: separate keys and values.
  template <class T>
  void run(std::int64_t blocks_at_a_time, int latent = 0) {
    layout_ = kPacked;
    layout_.values_in_keys = latent;
    if (latent > 0) layout_.kv_heads = 1;
    AttentionSchedule schedule({.max_tokens = 16,
                                .max_sequences = 1,
                                .max_length = kLength,
                                .q_heads = 4,
                                .kv = {.kv_heads = layout_.kv_heads, .head_dim = kDim, .values_in_keys = latent}},
                               blocks_at_a_time, 1000);
    const std::vector<std::int32_t> starts{0, 2}, lengths{kLength};
    schedule.fill({.query_starts = starts, .lengths = lengths, .block_tables = {}, .table_stride = 0});
    ASSERT_EQ(schedule.merges().empty(), blocks_at_a_time == 0);
    compare([&](auto stride) { return attend<T>(schedule, stride(128), stride(1) == kFar); });
  }

  template <class T>
  std::vector<T> attend(const AttentionSchedule& schedule, std::int64_t stride, bool far) {
    KvLayout layout = layout_;
    layout.bits = 8 * sizeof(T);
    layout.stride_bytes = far ? (kFar * 2 / (kBlockCount - 1) + 15) / 16 * 16 : layout.block_bytes();
    std::vector<AttentionMerge> merges = schedule.merges();
    for (AttentionMerge& merge : merges) merge.first_state += far ? kFar / (kDim + 2) : 0;
    const std::int64_t states = schedule.states_used() + (far && !merges.empty() ? kFar / (kDim + 2) : 0);

    const Matrix<T> q(2, 128, stride), out(2, 128, stride);
    const Memory cache(kBlockCount * layout.stride_bytes), table(kBlockCount * 4), starts(8), lengths(4),
        table_starts(8), state_memory(states * (kDim + 2) * 4);
    const Memory units(std::ssize(schedule.units()) * static_cast<std::int64_t>(sizeof(AttentionUnit))),
        merge_memory(std::ssize(merges) * static_cast<std::int64_t>(sizeof(AttentionMerge)));
    if (!Memory::has_room) return {};
    fill(q, 1);
    std::vector<std::int32_t> blocks;
    for (int block = 0; block < kBlockCount; ++block) {
      blocks.push_back(kBlockCount - 1 - block);
      put(reinterpret_cast<T*>(cache.at<std::byte>(layout.vector(blocks.back(), 0, 0, 0))),
          numbers<T>(layout.block_bytes() / std::int64_t{sizeof(T)}, block));
    }
    put(table.at<std::int32_t>(0), blocks);
    put(starts.at<std::int32_t>(0), {0, 2});
    put(lengths.at<std::int32_t>(0), {kLength});
    put(table_starts.at<std::int64_t>(0), {0});
    put(units.at<AttentionUnit>(0), schedule.units());
    if (!merges.empty()) put(merge_memory.at<AttentionMerge>(0), merges);
    attention(stream_, {.q = q.plain(),
                        .out = out.plain(),
                        .q_heads = 4,
                        .group = 4 / layout.kv_heads,
                        .cache = {cache.at<std::byte>(0), layout, format_of(dtype_of_type<T>)},
                        .sequences = {.query_starts = starts.at<std::int32_t>(0),
                                      .lengths = lengths.at<std::int32_t>(0),
                                      .tables = table.at<std::int32_t>(0),
                                      .table_starts = table_starts.at<std::int64_t>(0)},
                        .work = {.units = units.at<AttentionUnit>(0),
                                 .narrow_units = schedule.narrow_units(),
                                 .wide_units = std::ssize(schedule.units()) - schedule.narrow_units(),
                                 .merges = merge_memory.at<AttentionMerge>(0),
                                 .merge_count = std::ssize(merges),
                                 .merge_rows_max = schedule.merge_rows_max(),
                                 .states = state_memory.at<float>(0)},
                        .scale = 0.2f,
                        .window = 0,
                        .chunk = 0,
                        .soft_cap = 0,
                        .slopes = nullptr,
                        .sinks = nullptr});
    return contents(out);
  }

 private:
  KvLayout layout_ = kPacked;
};

TEST_F(CudaLargeAttention, OfLatentsOnTensorCores) {
  run<Half>(0, 24);
  run<Half>(100, 24);
}
TEST_F(CudaLargeAttention, OnTensorCores) {
  run<Half>(0);
  run<Half>(100);
}
TEST_F(CudaLargeAttention, Plain) {
  run<float>(0);
  run<float>(100);
}

TEST_F(CudaLargeStrides, Sample) {
  constexpr std::int64_t kVocab = 100;
  compare([&](auto stride) {
    const Matrix<float> logits(2, kVocab, stride(kVocab)), logprobs(2, 3, stride(3));
    const std::int64_t mask_stride = stride(4), top_stride = stride(3);
    const Memory mask((mask_stride + 4) * 4), top_ids((top_stride + 3) * 4);
    const Memory floats(1000), ints(1000), rules(2 * sizeof(DrawRule));
    if (!Memory::has_room) return std::vector<float>();
    fill(logits, 1);
    put(mask.at<std::int32_t>(mask_stride), {0, -1, 0, 0});  // the second row allows the ids 32 to 63
    const DrawRule first{.random = 0x123456789abcdef, .top_p = 0.9f, .top_count = 3};
    const DrawRule second{.random = 0x76543210fedcba9, .top_p = 0.9f, .mask_row = 1, .top_count = 3};
    put<DrawRule>(rules.at<DrawRule>(0), {first, second});
    const auto vector = [](const Memory& memory, DType type, std::int64_t at) {
      return View::of(memory.at<std::int32_t>(at), type, {2});
    };
    const SampleArgs args{
        .logits = logits.view(),
        .rules = View::of(rules.at<DrawRule>(0), DType::u8, {2, sizeof(DrawRule)}),
        .history = {},
        .history_counts = {},
        .bias = {},
        .bias_values = {},
        .mask = {mask.at<std::int32_t>(0), DType::i32, 2, {2, 4}, {mask_stride, 1}},
        .reported = {},
        .out_id = vector(ints, DType::i32, 20),
        .out_logprob = vector(floats, DType::f32, 20),
        .out_rank = vector(ints, DType::i32, 22),
        .out_top_ids = {top_ids.at<std::int32_t>(0), DType::i32, 2, {2, 3}, {top_stride, 1}},
        .out_top_logprobs = logprobs.view()};
    if (!own_->reserve_scratch(2 * kVocab * sizeof(float))) return std::vector<float>();
    run_sample(*own_, args);
    std::vector<float> all = contents(logits);
    const auto add = [&](const auto& items) { all.insert(all.end(), items.begin(), items.end()); };
    add(contents(logprobs));
    add(get(ints.at<std::int32_t>(20), 4));
    add(get(top_ids.at<std::int32_t>(top_stride), 3));
    add(get(floats.at<float>(20), 2));
    EXPECT_GE(get(ints.at<std::int32_t>(21), 1)[0], 32);
    EXPECT_LT(get(ints.at<std::int32_t>(21), 1)[0], 64);
    return all;
  });
}

}  // namespace
}  // namespace octavo::cuda
