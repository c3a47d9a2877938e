#include "kernels/weight_memory.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/quant_weight.h"

namespace octavo {
namespace {

// Types of matrices in WeightMemory::layout.
enum : std::int64_t { kPanels = 1, kQuantised = 2 };

void add(WeightMemory& memory, std::initializer_list<std::int64_t> numbers) {
  memory.layout.insert(memory.layout.end(), numbers);
}

void add(WeightMemory& memory, const Buffer& buffer) {
  if (buffer.bytes() > 0) memory.pieces.emplace_back(static_cast<std::byte*>(buffer.data()), buffer.bytes());
}

// Reads a WeightMemory in the order in which it was described.
class MemoryReader {
 public:
  explicit MemoryReader(const WeightMemory& memory) : numbers_(memory.layout), pieces_(memory.pieces) {}

  // Returns the next number. If there is none, or if it is not in [least, most], the reading fails, and the
  // result is `least`.
  std::int64_t number(std::int64_t least, std::int64_t most = std::int64_t{1} << 40) {
    const std::int64_t value = numbers_.empty() ? least - 1 : numbers_.front();
    if (!numbers_.empty()) numbers_ = numbers_.subspan(1);
    failed_ = failed_ || value < least || value > most;
    return failed_ ? least : value;
  }
  DType dtype(std::initializer_list<DType> allowed) {
    const auto value = static_cast<DType>(number(0, static_cast<std::int64_t>(DType::i64)));
    failed_ = failed_ || std::ranges::find(allowed, value) == allowed.end();
    return value;
  }
  // Returns the next piece, which must have this size. The buffer does not own the memory.
  Buffer piece(std::int64_t bytes) {
    failed_ = failed_ || pieces_.empty() || std::ssize(pieces_.front()) != bytes;
    if (failed_) return {};
    Buffer buffer(pieces_.front().data(), pieces_.front().size(), [](void*, std::size_t) {});
    pieces_ = pieces_.subspan(1);
    return buffer;
  }
  void require(bool valid) { failed_ = failed_ || !valid; }
  bool failed() const { return failed_; }
  bool complete() const { return !failed_ && numbers_.empty() && pieces_.empty(); }

 private:
  std::span<const std::int64_t> numbers_;
  std::span<const std::span<std::byte>> pieces_;
  bool failed_ = false;
};

struct MatrixSize {
  std::int64_t rows, cols;
  DType activation;
};

}  // namespace

namespace cpu {

void PanelWeight::describe(WeightMemory& memory) const {
  add(memory,
      {kPanels, static_cast<std::int64_t>(dtype_), layout_.width, scales_.groups, scales_.group_steps});
  add(memory, data_);
  add(memory, scales_.data);
}

void QuantWeight::describe(WeightMemory& memory) const {
  CHECK(written());
  add(memory, {kQuantised, std::ssize(bands_)});
  for (const QuantBand& band : bands_) {
    const QuantLayout& layout = band.layout;
    add(memory, {static_cast<std::int64_t>(layout.kind), band.first_row, layout.rows, layout.width,
                 layout.block_groups});
    add(memory, band.data);
  }
}

namespace {

Result<WeightPtr> panels_in(CpuStream& stream, const MatrixSize& size, MemoryReader& reader) {
  const DType dtype = reader.dtype({DType::f32, DType::f16, DType::bf16, DType::f8_e4m3});
  const PanelLayout layout = panel_layout(size.rows, size.cols, dtype, stream.kernels());
  reader.number(layout.width, layout.width);
  PanelScales scales{.groups = reader.number(0, size.cols), .group_steps = reader.number(0, size.cols)};
  reader.require((scales.groups > 0) == (dtype == DType::f8_e4m3));
  reader.require(scales.groups == 0 || scales.groups * scales.group_steps >= layout.steps());
  reader.require(size.activation == DType::f32 || (size.activation == DType::bf16 && layout.unit == 2));
  if (reader.failed()) return nullptr;
  Buffer data = reader.piece(layout.bytes());
  if (scales.groups > 0)
    scales.data = reader.piece(layout.panels() * scales.groups * layout.width * std::int64_t{sizeof(float)});
  if (!reader.complete()) return nullptr;
  TRY_VOID(stream.reserve_shared(matmul_scratch_bytes(layout.cols)));
  return std::make_unique<const PanelWeight>(layout, dtype, size.activation, std::move(data),
                                             std::move(scales));
}

Result<WeightPtr> bands_in(CpuStream& stream, const MatrixSize& size, MemoryReader& reader) {
  std::vector<QuantBand> bands;
  std::int64_t rows = 0;
  std::size_t bytes = 0;
  for (std::int64_t left = reader.number(1, size.rows); left > 0 && !reader.failed(); --left) {
    QuantLayout layout{.kind = static_cast<QuantKind>(reader.number(0, kQuantKinds - 1)),
                       .cols = size.cols,
                       .width = 2 * stream.kernels().lanes};
    reader.number(rows, rows);
    layout.rows = reader.number(1, size.rows - rows);
    reader.number(layout.width, layout.width);
    layout.block_groups = reader.number(1, layout.groups());
    reader.require(layout.groups() % layout.block_groups == 0);
    QuantBand& band = bands.emplace_back(QuantBand{.layout = layout, .first_row = rows, .parts = {}});
    band.data = reader.piece(layout.bytes());
    bytes += band.data.bytes();
    rows += layout.rows;
  }
  if (!reader.complete() || rows != size.rows) return nullptr;
  TRY_VOID(stream.reserve_shared(quant_scratch_bytes(stream.kernels(), size.cols)));
  return std::make_unique<const QuantWeight>(rows, size.cols, size.activation, bytes, std::move(bands));
}

}  // namespace
}  // namespace cpu

std::uint64_t WeightMemory::format() const {
  std::uint64_t hash = 0;
  for (const std::int64_t number : layout) hash = random_bits(hash, static_cast<std::uint64_t>(number));
  for (const auto& piece : pieces) hash = random_bits(hash, piece.size());
  return hash;
}

bool has_weight_memory(const Device& device) {
  return dynamic_cast<const cpu::CpuDevice*>(&device) != nullptr;
}

WeightMemory memory_of(const Weight& weight) {
  const auto* host = dynamic_cast<const cpu::CpuWeight*>(&weight);
  CHECK(host != nullptr, "a matrix of another backend than the CPU's");
  WeightMemory memory;
  add(memory, {weight.rows(), weight.cols(), static_cast<std::int64_t>(weight.activation())});
  host->describe(memory);
  return memory;
}

Result<WeightPtr> weight_in(Device& device, const WeightMemory& memory) {
  auto& own = static_cast<cpu::CpuDevice&>(device);
  MemoryReader reader(memory);
  const MatrixSize size{.rows = reader.number(1),
                        .cols = reader.number(1),
                        .activation = reader.dtype({DType::f32, DType::f16, DType::bf16})};
  const std::int64_t type = reader.number(kPanels, kQuantised);
  TRY(WeightPtr weight, type == kPanels ? cpu::panels_in(own.stream(), size, reader)
                                        : cpu::bands_in(own.stream(), size, reader));
  if (!weight) return failure(ErrorCode::corrupt, "the numbers do not describe a matrix of this processor");
  for (const auto& piece : memory.pieces) own.add_mapped(piece.size());
  return weight;
}

}  // namespace octavo
