#include "kernels/weight_memory.h"

#include <initializer_list>

#include "base/check.h"
#include "base/random.h"
#include "kernels/cpu/cpu_weight.h"
#include "kernels/cpu/quant_weight.h"

namespace octavo {
namespace {

void mix(std::uint64_t& format, std::initializer_list<std::int64_t> numbers) {
  for (const std::int64_t number : numbers) format = random_bits(format, static_cast<std::uint64_t>(number));
}

void add(WeightMemory& memory, const Buffer& buffer) {
  mix(memory.format, {static_cast<std::int64_t>(buffer.bytes())});
  if (buffer.bytes() > 0) memory.pieces.emplace_back(static_cast<std::byte*>(buffer.data()), buffer.bytes());
}

}  // namespace

namespace cpu {

void PanelWeight::describe(WeightMemory& memory) const {
  mix(memory.format, {1, layout_.width, layout_.unit, layout_.element_bytes,
                      static_cast<std::int64_t>(dtype_), scales_.groups, scales_.group_steps});
  add(memory, data_);
  add(memory, scales_.data);
}

void QuantWeight::describe(WeightMemory& memory) const {
  CHECK(written());
  mix(memory.format, {2});
  for (const QuantBand& band : bands_) {
    const QuantLayout& layout = band.layout;
    mix(memory.format, {band.first_row, layout.rows, layout.width, layout.block_groups,
                        static_cast<std::int64_t>(layout.kind)});
    add(memory, band.data);
  }
}

}  // namespace cpu

WeightMemory memory_of(const Weight& weight) {
  const auto* host = dynamic_cast<const cpu::CpuWeight*>(&weight);
  CHECK(host != nullptr, "a matrix of another backend than the CPU's");
  WeightMemory memory;
  mix(memory.format, {weight.rows(), weight.cols(), static_cast<std::int64_t>(weight.activation())});
  host->describe(memory);
  return memory;
}

}  // namespace octavo
