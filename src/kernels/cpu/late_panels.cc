#include "kernels/cpu/late_panels.h"

#include <algorithm>

namespace octavo::cpu {
namespace {

constexpr std::int64_t kPanelsAtOnce = 4;

}  // namespace

LatePanels::LatePanels(std::span<const QuantBand> bands, std::shared_ptr<const MappedFile> file)
    : bands_(bands), file_(std::move(file)) {
  for (const QuantBand& band : bands_) {
    bytes_ += band.data.bytes();
    panels_ += band.layout.panels();
  }
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
  std::int64_t before = 0;  // panels of earlier bands
  for (const QuantBand& band : bands_) {
    const std::int64_t panels = band.layout.panels();
    for (std::int64_t i = std::max(first, before); i < std::min(end, before + panels); ++i)
      band.write(i - before);
    before += panels;
  }
  const std::lock_guard lock(mutex_);
  done_ += end - first;
  if (done_ == panels_) finish();
  if (--writers_ == 0) idle_.notify_all();
  return true;
}

void LatePanels::finish() {
  // The server has already answered with these weights, so an error could not be returned to anybody. The
  // process that started this engine starts it again, and then loading reports the error.
  CHECK(file_->intact(), "{} was shortened or became unreadable while its weights were read", file_->path());
  for (const QuantBand& band : bands_)
    for (const MatrixPart& part : band.parts) {
      const auto* bytes = static_cast<const std::byte*>(part.values.data);
      const std::int64_t last_row = (part.rows() - 1) * part.values.stride[0];
      file_->release({bytes, static_cast<std::size_t>(last_row + part.values.size(1))});
    }
  written_.store(true, std::memory_order_release);
}

void LatePanels::stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  idle_.wait(lock, [&] { return writers_ == 0; });
}

}  // namespace octavo::cpu
