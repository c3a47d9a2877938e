// Quantised matrices in panels: their layout, and how their rows are read.
#include "kernels/cpu/quant_weight.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/late_panels.h"
#include "tensor/dequantize.h"

namespace octavo::cpu {
namespace {

// Whether each group of 32 columns has two scales.
bool has_pairs_of_scales(const MatrixPart& part) {
  return part.cols() % kQuantGroup == 0 && part.scales.size(1) == 2 * (part.cols() / kQuantGroup);
}

QuantKind kind_of(const MatrixPart& part) {
  switch (part.encoding) {
    case Encoding::q8_0:
      return QuantKind::q8_0;
    case Encoding::q4_0:
      return QuantKind::q4_0;
    case Encoding::q4_1:
      return QuantKind::q4_1;
    case Encoding::q5_0:
      return QuantKind::q5_0;
    case Encoding::q5_1:
      return QuantKind::q5_1;
    case Encoding::q2_k:
      return QuantKind::q2_k;
    case Encoding::q3_k:
      return QuantKind::q3_k;
    case Encoding::q4_k:
      return QuantKind::q4_k;
    case Encoding::q5_k:
      return QuantKind::q5_k;
    case Encoding::q6_k:
      return QuantKind::q6_k;
    case Encoding::iq4_nl:
      return QuantKind::iq4_nl;
    case Encoding::iq4_xs:
      return QuantKind::iq4_xs;
    case Encoding::iq3_s:
      return QuantKind::iq3_s;
    case Encoding::iq3_xxs:
      return QuantKind::iq3_xxs;
    case Encoding::iq2_s:
    case Encoding::iq2_xs:
    case Encoding::iq2_xxs:
      return QuantKind::iq2;
    case Encoding::iq1_s:
    case Encoding::iq1_m:
      return QuantKind::iq1;
    case Encoding::tq1_0:
    case Encoding::tq2_0:
      return QuantKind::tq;
    case Encoding::q1_0:
      return QuantKind::q1_0;
    case Encoding::int4:
      return part.zeros ? QuantKind::int4_zero : QuantKind::int4;
    case Encoding::int8:
      return part.zeros ? QuantKind::int8_zero : QuantKind::int8;
    case Encoding::mxfp4:
      return has_pairs_of_scales(part) ? QuantKind::nvfp4 : QuantKind::mxfp4;
    default:
      CHECK(false, "{} is not multiplied in integers", name(part.encoding));
  }
}

template <class T>
T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Addresses of the items of one row in a block or group of a panel. Each field has one item per row.
struct RowOf {
  const QuantLayout& layout;
  std::int64_t row;  // index of the row in the panel

  std::int64_t scale() const { return row * layout.scale_bytes(); }
  std::int64_t min() const { return layout.width * layout.scale_bytes() + row * layout.min_bytes(); }
  std::int64_t sub(std::int64_t i) const { return i * layout.width + row; }
  // Returns the offset of four bytes of codes: unit `unit` of a plane. `bits` is the number of bits per code
  // in the planes before it.
  std::int64_t plane(std::int64_t bits, std::int64_t unit) const {
    return layout.width * (layout.sub_bytes() + 4 * (bits + unit)) + 4 * row;
  }
};

void get_codes(const RowOf& at, const std::byte* group, std::uint8_t* codes) {
  const int low = at.layout.format().low_bits;
  const int high = at.layout.format().high_bits;
  for (int step = 0; step < 8; ++step) {
    std::uint32_t quad = get<std::uint32_t>(group + at.plane(0, step * low / 8)) >> step * low % 8 &
                         0x01010101u * ((1u << low) - 1);
    if (high > 0)
      quad |= (get<std::uint32_t>(group + at.plane(low, step * high / 8)) >> step * high % 8 &
               0x01010101u * ((1u << high) - 1))
              << low;
    std::memcpy(codes + 4 * step, &quad, sizeof quad);
  }
}

// Dequantises one group of one row. The numbers are equal to the numbers of dequantize().
void read_group(const QuantLayout& layout, const RowOf& at, const std::byte* block, std::int64_t g,
                float* out) {
  const QuantFormat& format = layout.format();
  const std::byte* group = block + layout.header_bytes() + g * layout.group_bytes();
  std::uint8_t codes[kQuantGroup];
  get_codes(at, group, codes);
  const bool wide = layout.scale_bytes() == 4;
  const float header_scale = layout.scale_bytes() == 0            ? 1
                             : wide                               ? get<float>(block + at.scale())
                             : format.scales == QuantScales::bf16 ? to_f32(get<BFloat16>(block + at.scale()))
                                                                  : to_f32(get<Float16>(block + at.scale()));
  const std::uint8_t* values =
      format.values == CodeValues::codes ? nullptr : kCodeValues[static_cast<int>(format.values)];
  const float block_min = layout.has_min() && !wide ? to_f32(get<Float16>(block + at.min())) : 0;
  const int zero = format.scales == QuantScales::f32_zero ? get<std::uint8_t>(block + at.min()) : format.zero;
  const int in_part = kQuantGroup / format.subs;
  for (int i = 0; i < kQuantGroup; ++i) {
    const int s = i / in_part;
    float scale = 1;
    int min = 1;
    if (format.scales == QuantScales::bf16_parts) {
      scale = to_f32(get<BFloat16>(group + 2 * at.sub(s)));
    } else if (format.scales == QuantScales::nibbles_min) {
      const auto both = get<std::uint8_t>(group + at.sub(s));
      scale = static_cast<float>(both & 15);
      min = both >> 4;
    } else if (layout.two_levels()) {
      scale = get<std::int8_t>(group + at.sub(s));
      if (layout.has_min()) min = get<std::int8_t>(group + at.sub(format.subs + s));
    }
    const int v = values != nullptr ? values[codes[i]] : codes[i];
    const float product = header_scale * format.factor * scale * static_cast<float>(v - zero);
    out[i] = layout.has_min() && !wide ? product - block_min * static_cast<float>(min) : product;
  }
}

// Reads columns of one row of a band from the file's blocks.
void read_blocks(const QuantBand& band, std::int64_t row, std::int64_t column, std::int64_t count,
                 float* out) {
  constexpr std::int64_t kMostElements = 256;  // numbers in a block
  auto part = band.parts.begin();
  for (; row >= part->rows(); ++part) row -= part->rows();
  const BlockShape block = block_shape(part->encoding);
  const std::int64_t first = column / block.elements, last = (column + count - 1) / block.elements + 1;
  float numbers[kReadColumns + 2 * kMostElements];
  CHECK((last - first) * block.elements <= std::ssize(numbers));
  dequantize({part->encoding, part->values.columns(first * block.bytes, (last - first) * block.bytes)}, row,
             numbers);
  std::copy_n(numbers + (column - first * block.elements), count, out);
}

}  // namespace

void QuantWeight::read(std::int64_t row, std::int64_t column, std::int64_t count, const IsaKernels&,
                       float* out) const {
  const QuantBand* band = &bands_.back();
  while (row < band->first_row) --band;
  const QuantLayout& layout = band->layout;
  row -= band->first_row;
  if (const auto file = written() ? nullptr : late_->file(); file) {
    read_blocks(*band, row, column, count, out);
    return LatePanels::check_file(*file);
  }
  const RowOf at{layout, row % layout.width};
  const std::byte* const panel = band->panel(row / layout.width);
  for (std::int64_t first = column / kQuantGroup * kQuantGroup; first < column + count;
       first += kQuantGroup) {
    const std::int64_t group = first / kQuantGroup;
    float numbers[kQuantGroup];
    read_group(layout, at, panel + group / layout.block_groups * layout.block_bytes(),
               group % layout.block_groups, numbers);
    const std::int64_t begin = std::max(first, column);
    const std::int64_t end = std::min(first + kQuantGroup, column + count);
    std::copy(numbers + (begin - first), numbers + (end - first), out + (begin - column));
  }
}

void QuantBand::write(std::int64_t i, std::byte* panel) const {
  std::int64_t part_first = 0;
  for (const MatrixPart& part : parts) {
    const std::int64_t first = std::max(part_first, i * layout.width);
    const std::int64_t last = std::min(part_first + part.rows(), (i + 1) * layout.width);
    if (first < last) pack_rows(part, first - part_first, last - first, layout, first % layout.width, panel);
    part_first += part.rows();
  }
}

QuantWeight::~QuantWeight() {
  if (late_) late_->stop();
}

std::int64_t QuantWeight::panels() const {
  std::int64_t all = 0;
  for (const QuantBand& band : bands_) all += band.layout.panels();
  return all;
}

std::size_t QuantWeight::panel_bytes() const {
  std::int64_t most = 0;
  for (const QuantBand& band : bands_) most = std::max(most, band.layout.panel_bytes());
  return static_cast<std::size_t>(most);
}

bool QuantWeight::written() const { return late_ == nullptr || late_->written(); }

void QuantWeight::write(ThreadPool& pool) {
  for (QuantBand& band : bands_) {
    pool.for_ranges(band.layout.panels(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) band.write(i);
    });
    band.parts.clear();
  }
}

std::shared_ptr<LatePanels> QuantWeight::write_late(std::shared_ptr<const MappedFile> file) {
  return late_ = std::make_shared<LatePanels>(bands_, std::move(file));
}

Result<std::unique_ptr<QuantWeight>> lay_out_quantised(CpuStream& stream, const MatrixSource& source) {
  const std::int64_t cols = source.parts[0].cols();
  std::vector<QuantBand> bands;
  std::int64_t rows = 0;
  for (const MatrixPart& part : source.parts) {
    QuantLayout layout{
        .kind = kind_of(part), .rows = part.rows(), .cols = cols, .width = 2 * stream.kernels().lanes};
    layout.block_groups = layout.format().block_groups;
    if (layout.block_groups == 0) {
      const std::int64_t blocks = layout.two_levels() ? 1 : part.scales.size(1);
      if (blocks > 1 && cols / blocks % kQuantGroup != 0)
        return failure(ErrorCode::unsupported, "{} in groups of {} columns (not a multiple of {})",
                       name(part.encoding), cols / blocks, kQuantGroup);
      layout.block_groups = layout.groups() / blocks;
    }
    const bool goes_on = !bands.empty() && bands.back().layout.kind == layout.kind &&
                         bands.back().layout.block_groups == layout.block_groups;
    if (goes_on) {
      bands.back().layout.rows += layout.rows;
      bands.back().parts.push_back(part);
    } else {
      bands.push_back({layout, rows, {part}});
    }
    rows += part.rows();
  }
  std::size_t bytes = 0;
  TRY_VOID(stream.reserve_shared(quant_scratch_bytes(stream.kernels(), cols)));
  for (QuantBand& band : bands) {
    TRY(band.data, allocate_host_packed(static_cast<std::size_t>(band.layout.bytes())));
    bytes += band.data.bytes();
  }
  return std::make_unique<QuantWeight>(rows, cols, source.activation, bytes, std::move(bands));
}

Result<WeightPtr> prepare_quantised(CpuDevice& device, const MatrixSource& source) {
  CpuStream& stream = device.stream();
  TRY(std::unique_ptr<QuantWeight> weight, lay_out_quantised(stream, source));
  if (source.file) {
    TRY_VOID(stream.reserve_scratch(weight->panel_bytes()));
    device.late_writer().add(weight->write_late(source.file));
  } else {
    weight->write(stream.pool());
  }
  return weight;
}

}  // namespace octavo::cpu
