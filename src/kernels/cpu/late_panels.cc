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
    : bands_(bands), file_(std::move(file)), states_(static_cast<std::size_t>(panels_of(bands))) {
  for (const QuantBand& band : bands_) bytes_ += band.data.bytes();
}

bool LatePanels::begin(std::int64_t panel) {
  std::uint8_t unwritten = kUnwritten;
  return states_[static_cast<std::size_t>(panel)].compare_exchange_strong(unwritten, kBegun);
}

void LatePanels::write(const QuantBand& band, std::int64_t i, std::int64_t panel) {
  const std::shared_ptr<const MappedFile> file = file_.load();
  band.write(i);
  end_read(*file, band, i);
  states_[static_cast<std::size_t>(panel)].store(kWritten, std::memory_order_release);
  if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 < std::ssize(states_)) return;
  check_file(*file);
  // A read also maps pages before and after it, so some pages are still mapped.
  for (const QuantBand& each : bands_) release(*file, each, 0, each.layout.panels());
  written_.store(true, std::memory_order_release);
  file_.store(nullptr);
}

void LatePanels::begin_product() {
  allowed_.fetch_add((std::ssize(states_) + kProducts - 1) / kProducts, std::memory_order_relaxed);
}

bool LatePanels::ready(const QuantBand& band, std::int64_t i, std::int64_t panel) {
  if (states_[static_cast<std::size_t>(panel)].load(std::memory_order_acquire) == kWritten) return true;
  if (panel >= allowed_.load(std::memory_order_relaxed) || !begin(panel)) return false;
  write(band, i, panel);
  return true;
}

void LatePanels::end_read(const MappedFile& file, const QuantBand& band, std::int64_t i) const {
  CHECK(file.intact(), "{}", file.intact().error().message);
  // A few panels together, because a release interrupts the other threads.
  if (i % kPiece != kPiece - 1 && i != band.layout.panels() - 1) return;
  check_file(file);
  // Again the piece before, too: other threads still read its last panels when it was released, and a read of
  // this piece's first page also maps pages before it.
  release(file, band, std::max(i / kPiece - 1, std::int64_t{0}) * kPiece, i + 1);
}

void LatePanels::check_file(const MappedFile& file) {
  const Result<> intact = file.intact(), unchanged = file.unchanged();
  CHECK(intact, "{}", intact.error().message);
  CHECK(unchanged, "{}", unchanged.error().message);
}

bool LatePanels::write_some() {
  std::int64_t first = 0, end = 0;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || next_ == std::ssize(states_)) return false;
    first = next_;
    end = next_ = std::min(next_ + kPiece, std::ssize(states_));
    ++writers_;
  }
  std::int64_t before = 0;  // panels of earlier bands
  for (const QuantBand& band : bands_) {
    const std::int64_t after = before + band.layout.panels();
    for (std::int64_t i = std::max(first, before); i < std::min(end, after); ++i)
      if (begin(i)) write(band, i - before, i);
    before = after;
  }
  const std::lock_guard lock(mutex_);
  if (--writers_ == 0) idle_.notify_all();
  return true;
}

std::size_t LatePanels::unwritten_bytes() const {
  const std::size_t panels = states_.size();
  if (stopped_) return 0;
  return bytes_ / panels * (panels - static_cast<std::size_t>(done_.load()));
}

void LatePanels::stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  idle_.wait(lock, [&] { return writers_ == 0; });
}

}  // namespace octavo::cpu
