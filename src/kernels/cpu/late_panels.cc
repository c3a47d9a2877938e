#include "kernels/cpu/late_panels.h"

#include <algorithm>

namespace octavo::cpu {
namespace {

std::int64_t panels_of(std::span<const QuantBand> bands) {
  std::int64_t panels = 0;
  for (const QuantBand& band : bands) panels += band.layout.panels();
  return panels;
}

// Lets the pages with the rows of the panels [first, end) leave the process's memory.
void release(const MappedFile& file, const QuantBand& band, std::int64_t first, std::int64_t end) {
  std::int64_t part_first = 0;
  for (const MatrixPart& part : band.parts) {
    const std::int64_t first_row = std::max(first * band.layout.width - part_first, std::int64_t{0});
    const std::int64_t last_row = std::min(end * band.layout.width - part_first, part.rows()) - 1;
    part_first += part.rows();
    if (first_row > last_row) continue;
    const auto* bytes = static_cast<const std::byte*>(part.values.data);
    const std::int64_t stride = part.values.stride[0];
    file.release({bytes + first_row * stride,
                  static_cast<std::size_t>((last_row - first_row) * stride + part.values.size(1))});
  }
}

}  // namespace

LatePanels::LatePanels(std::span<const QuantBand> bands, std::shared_ptr<const MappedFile> file)
    : bands_(bands),
      file_(std::move(file)),
      panels_(panels_of(bands)),
      pieces_(static_cast<std::size_t>((panels_ + kPanelsAtOnce - 1) / kPanelsAtOnce)) {
  for (const QuantBand& band : bands_) bytes_ += band.data.bytes();
}

void LatePanels::check_file() const {
  CHECK(file_->intact(), "{} was shortened or became unreadable while its weights were read", file_->path());
}

void LatePanels::write_piece(std::int64_t first, std::int64_t end) {
  std::int64_t before = 0;  // panels of earlier bands
  for (const QuantBand& band : bands_) {
    const std::int64_t panels = band.layout.panels();
    const std::int64_t begin = std::max(first - before, std::int64_t{0});
    const std::int64_t last = std::min(end - before, panels);
    for (std::int64_t i = begin; i < last; ++i) band.write(i);
    if (begin < last) release(*file_, band, begin, last);
    before += panels;
  }
  check_file();
}

bool LatePanels::write_some() {
  std::int64_t first = 0, end = 0;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || begun_ == panels_) return false;
    first = begun_;
    end = begun_ = std::min(begun_ + kPanelsAtOnce, panels_);
    ++writers_;
  }
  write_piece(first, end);
  pieces_[static_cast<std::size_t>(first / kPanelsAtOnce)].store(true, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  done_.fetch_add(end - first, std::memory_order_release);
  if (--writers_ == 0) idle_.notify_all();
  return true;
}

std::size_t LatePanels::unwritten_bytes() const {
  return bytes_ / static_cast<std::size_t>(panels_) * static_cast<std::size_t>(panels_ - done_.load());
}

void LatePanels::stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  idle_.wait(lock, [&] { return writers_ == 0; });
}

}  // namespace octavo::cpu
