#include "kernels/cuda/device.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/host_products.h"

namespace octavo::cuda {
namespace {

constexpr std::size_t kAlignment = 16;
// maximum bytes of device memory for partial states of attention
constexpr std::int64_t kMostStateBytes = std::int64_t{128} << 20;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

Result<Buffer> device_buffer(std::size_t bytes) {
  TRY(void* data, runtime::allocate(bytes));
  return Buffer(data, bytes, [](void* memory, std::size_t) { runtime::release(memory); });
}

std::int64_t blocks_of(const AttentionLimits& limits) {
  return (limits.max_length + limits.kv.block_size - 1) / limits.kv.block_size;
}

// Returns the bytes of one query's scores in sparse attention.
std::int64_t score_bytes(const AttentionLimits& limits) { return limits.max_length * std::int64_t{4}; }
// Returns the bytes of all rotated queries of a step, in f32.
std::size_t rotated_bytes(const AttentionLimits& limits) {
  if (!limits.kv.rotated()) return 0;
  return static_cast<std::size_t>(std::int64_t{limits.max_tokens} * limits.q_heads * limits.kv.head_dim) *
         sizeof(float);
}
std::int64_t queries_scored(const AttentionLimits& limits) {
  return std::clamp<std::int64_t>(kMostStateBytes / score_bytes(limits), 1, limits.max_tokens);
}

}  // namespace

Result<Buffer> pinned_buffer(std::size_t bytes) {
  TRY(void* data, runtime::allocate_pinned(bytes));
  return Buffer(data, bytes, [](void* memory, std::size_t) { runtime::release_pinned(memory); });
}

Format format_of(DType type) {
  switch (type) {
    case DType::f32:
      return Format::f32;
    case DType::f16:
      return Format::f16;
    case DType::bf16:
      return Format::bf16;
    case DType::f8_e4m3:
      return Format::f8;
    case DType::i8:  // only for KV caches
      return Format::q8;
    case DType::i4:
      return Format::levels;
    default:
      CHECK(false, "no numbers of {} on this device", name(type));
  }
}

KvLayout layout_of(const KvSpec& spec, std::int64_t stride_bytes) {
  return {stride_bytes,        spec.kv_heads,       spec.head_dim,  spec.entries(),
          bits_of(spec.dtype), spec.values_in_keys, spec.index_dim, spec.scaled()};
}
KvCache cache_of(const KvLayer& cache) {
  return {cache.data, layout_of(cache.spec, cache.stride_bytes), format_of(cache.spec.dtype)};
}

StreamHandle handle_of(Stream& stream) {
  runtime::enter_device();
  return cuda_stream(stream).handle();
}
float* scratch_of(Stream& stream, std::int64_t count) {
  return static_cast<float*>(cuda_stream(stream).scratch(static_cast<std::size_t>(count) * sizeof(float)));
}
const WeightRows& numbers_of(const Weight& weight) {
  return static_cast<const CudaWeight&>(weight).numbers();
}

CudaStream::CudaStream(const runtime::DeviceInfo& info)
    : handle_(runtime::make_stream()), hopper_{.processors = info.wgmma ? info.processors : 0} {
  for (runtime::EventHandle& event : events_) event = runtime::make_event();
}
CudaStream::~CudaStream() {
  synchronize();
  for (const runtime::EventHandle event : events_) runtime::destroy_event(event);
  runtime::destroy_stream(handle_);
}

Stream::Mark CudaStream::mark() {
  ++marks_;
  runtime::record_event(handle_, events_[marks_ % events_.size()]);
  return marks_;
}
void CudaStream::wait(Mark mark) {
  if (mark > 0) runtime::wait_for(events_[mark % events_.size()]);
}

std::unique_ptr<Recording> CudaStream::record(const std::function<void()>& work) {
  runtime::begin_graph(handle_);
  recording_ = true;
  work();
  recording_ = false;
  return std::make_unique<CudaRecording>(runtime::end_graph(handle_), std::exchange(recorded_, {}));
}
void CudaStream::replay(const Recording& recording) {
  runtime::launch_graph(handle_, static_cast<const CudaRecording&>(recording).graph());
}

void CudaStream::call_host(HostFunction function) {
  auto owned = std::make_unique<HostFunction>(std::move(function));
  if (recording_) {
    runtime::call_host(
        handle_, [](void* of_graph) { (*static_cast<HostFunction*>(of_graph))(); }, owned.get());
    recorded_.push_back(std::move(owned));
    return;
  }
  runtime::call_host(
      handle_,
      [](void* released) {
        const std::unique_ptr<HostFunction> called(static_cast<HostFunction*>(released));
        (*called)();
      },
      owned.release());
}

Result<> CudaStream::reserve_scratch(std::size_t bytes) {
  if (bytes <= scratch_.bytes()) return {};
  synchronize();  // Waits for the stream, because running operators may use the old memory.
  scratch_ = {};
  TRY(scratch_, device_buffer(bytes));
  return {};
}

Result<> CudaStream::reserve_products() {
  if (hopper_.processors == 0) return {};
  // Number of partial sums (f32) per multiprocessor for which memory is reserved. They suffice for a product
  // of 28,672 columns and 8,192 outputs.
  constexpr std::int64_t kSumsOfProcessor = 128 << 10;
  constexpr std::size_t kArrivedBytes = kMostSharedTiles * sizeof(std::int32_t);
  hopper_.sums_room = hopper_.processors * kSumsOfProcessor;
  TRY(products_, device_buffer(kArrivedBytes + static_cast<std::size_t>(hopper_.sums_room) * sizeof(float)));
  hopper_.arrived = static_cast<std::int32_t*>(products_.data());
  hopper_.sums = reinterpret_cast<float*>(static_cast<std::byte*>(products_.data()) + kArrivedBytes);
  return {};
}

void* CudaStream::rounded_x(std::size_t bytes) {
  void* const memory = rounded_.at_least(bytes, device_buffer);
  CHECK(memory != nullptr, "no memory for {} bytes of rounded activations: lower --max-num-batched-tokens",
        bytes);
  return memory;
}

void* CudaStream::scratch(std::size_t bytes) const {
  CHECK(bytes <= scratch_.bytes(), "{} bytes of scratch memory, {} reserved", bytes, scratch_.bytes());
  return scratch_.data();
}

Result<Buffer> CudaDevice::allocate(std::size_t bytes) { return device_buffer(bytes); }
Result<Buffer> CudaDevice::allocate_staging(std::size_t bytes) { return pinned_buffer(bytes); }

void CudaDevice::upload(Stream& stream, const View& device, const void* host) {
  CHECK(device.contiguous());
  if (device.bytes() > 0)
    runtime::copy_to_device(handle_of(stream), device.data, host, static_cast<std::size_t>(device.bytes()));
}

void CudaDevice::download(Stream& stream, void* host, const View& device) {
  CHECK(device.contiguous());
  if (device.bytes() > 0)
    runtime::copy_to_host(handle_of(stream), host, device.data, static_cast<std::size_t>(device.bytes()));
}

void CudaDevice::copy(Stream& stream, const View& to, const View& from) {
  CHECK(to.contiguous() && from.contiguous() && to.bytes() == from.bytes());
  if (to.bytes() > 0)
    runtime::copy_on_device(handle_of(stream), to.data, from.data, static_cast<std::size_t>(to.bytes()));
}

void CudaDevice::clear(Stream& stream, const View& device) {
  CHECK(device.contiguous());
  if (device.bytes() > 0)
    runtime::clear(handle_of(stream), device.data, static_cast<std::size_t>(device.bytes()));
}

Result<std::unique_ptr<CudaAttentionPlan>> CudaAttentionPlan::make(CudaDevice& device,
                                                                   const AttentionLimits& limits) {
  const std::int64_t state_bytes = (limits.kv.head_dim + 2) * std::int64_t{4};
  const std::int64_t seen = limits.window > 0 ? std::min(limits.window + kPieceTokens, limits.max_length)
                                              // number of tokens, rounded up to full pieces
                                              : limits.max_length;
  const std::int64_t pieces = (seen + kPieceTokens - 1) / kPieceTokens;
  const std::int64_t states =
      std::min(limits.max_tokens * std::int64_t{limits.q_heads} * pieces, kMostStateBytes / state_bytes);
  const bool one_block = limits.kv.values_in_keys > 0;
  std::unique_ptr<CudaAttentionPlan> plan(
      new CudaAttentionPlan(device, limits, device.processors() * (one_block ? 1 : kBlocksPerProcessor), states));
  TRY_VOID(device.stream().reserve_scratch(std::max(
      plan->state_bytes() + rotated_bytes(limits),
      static_cast<std::size_t>(limits.kv.index_dim > 0 ? queries_scored(limits) * score_bytes(limits) : 0))));
  const std::size_t bytes = plan->most_bytes();
  TRY(plan->device_, device_buffer(bytes));
  TRY_VOID(plan->staging_.reserve(device, device.stream(), bytes));
  plan->tables_.reserve(static_cast<std::size_t>(limits.max_sequences * blocks_of(limits)));
  plan->table_starts_.reserve(static_cast<std::size_t>(limits.max_sequences));
  return plan;
}

std::size_t CudaAttentionPlan::most_bytes() const {
  const auto sequences = static_cast<std::size_t>(limits_.max_sequences);
  return 2 * aligned((sequences + 1) * 4) + aligned(sequences * 8) +
         aligned(sequences * static_cast<std::size_t>(blocks_of(limits_)) * 4) +
         aligned(static_cast<std::size_t>(schedule_.most_units()) * sizeof(AttentionUnit)) +
         aligned(static_cast<std::size_t>(schedule_.most_tiles()) * sizeof(AttentionMerge)) +
         aligned(static_cast<std::size_t>(schedule_.most_shared_queries()) * sizeof(SharedQuery));
}

template <class T>
const T* CudaAttentionPlan::stage(std::span<const T> items) {
  const std::size_t offset = staged_;
  staged_ = aligned(staged_ + items.size_bytes());
  CHECK(staged_ <= device_.bytes(), "{} bytes of an attention plan, room for {}", staged_, device_.bytes());
  if (!items.empty()) std::memcpy(staging_.data() + offset, items.data(), items.size_bytes());
  return reinterpret_cast<const T*>(static_cast<std::byte*>(device_.data()) + offset);
}

void CudaAttentionPlan::fill(CudaStream& stream, const AttentionShape& shape) {
  tables_.clear();
  table_starts_.clear();
  for (std::size_t s = 0; s < shape.lengths.size(); ++s) {
    table_starts_.push_back(std::ssize(tables_));
    const std::int64_t blocks = (shape.lengths[s] + limits_.kv.block_size - 1) / limits_.kv.block_size;
    if (blocks == 0) continue;
    CHECK(blocks <= shape.table_stride, "{} blocks in a table of {}", blocks, shape.table_stride);
    const auto row = shape.block_tables.subspan(s * static_cast<std::size_t>(shape.table_stride),
                                                static_cast<std::size_t>(blocks));
    tables_.insert(tables_.end(), row.begin(), row.end());
  }
  schedule_.fill(shape);
  staging_.swap(stream);
  staged_ = 0;
  sequences_ = std::ssize(shape.lengths);
  longest_ = limits_.max_length;  // a captured step may be replayed with sequences of any length
  if (!shape.recorded && sequences_ > 0) longest_ = *std::ranges::max_element(shape.lengths);
  tables_on_device_.query_starts = stage(shape.query_starts);
  tables_on_device_.lengths = stage(shape.lengths);
  tables_on_device_.table_starts = stage(std::span<const std::int64_t>(table_starts_));
  work_.units = stage(std::span<const AttentionUnit>(schedule_.units()));
  work_.narrow_units = schedule_.narrow_units();
  work_.wide_units = std::ssize(schedule_.units()) - schedule_.narrow_units();
  work_.wide_by_wgmma = schedule_.wide_by_wgmma();
  work_.merges = stage(std::span<const AttentionMerge>(schedule_.merges()));
  work_.merge_count = std::ssize(schedule_.merges());
  work_.merge_rows_max = schedule_.merge_rows_max();
  work_.shared = stage(std::span<const SharedQuery>(schedule_.shared_queries()));
  tables_on_device_.tables = stage(std::span<const std::int32_t>(tables_));
  staging_.send(on_, stream, View::of(device_.data(), DType::u8, {static_cast<std::int64_t>(staged_)}));
}

AttentionWork CudaAttentionPlan::work() const {
  AttentionWork work = work_;
  const std::int64_t state_bytes = (limits_.kv.head_dim + 2) * std::int64_t{4};
  work.states = static_cast<float*>(
      on_.stream().scratch(static_cast<std::size_t>(schedule_.states_used() * state_bytes)));
  return work;
}

std::size_t CudaAttentionPlan::state_bytes() const {
  return aligned(static_cast<std::size_t>(schedule_.most_states() * (limits_.kv.head_dim + 2)) *
                 sizeof(float));
}

void* CudaAttentionPlan::rotated_queries() const {
  return static_cast<std::byte*>(on_.stream().scratch(state_bytes() + rotated_bytes(limits_))) +
         state_bytes();
}

void CudaAttentionPlan::describe_scores(ChooseParams& params) const {
  params.longest = longest_;
  params.queries_at_once = queries_scored(limits_);
  params.score_stride = limits_.max_length;
  params.scores = static_cast<float*>(
      on_.stream().scratch(static_cast<std::size_t>(params.queries_at_once * score_bytes(limits_))));
}

}  // namespace octavo::cuda
