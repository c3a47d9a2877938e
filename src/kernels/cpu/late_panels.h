// Quantised panels that are written while the matrix is already in use.
//
// Writing the panels of a model takes longer than everything else at its start: it reads the file and touches
// as much new memory. So an engine can start with the blocks in the mapped file. Until the panels of a matrix
// are written, a product writes each panel that it needs to working memory.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/cpu/late_writer.h"
#include "kernels/cpu/quant_weight.h"
#include "tensor/mapped_file.h"

namespace octavo::cpu {

// The panels of one matrix, and the parts of the file from which they are written. Panels are numbered in the
// order of the bands.
class LatePanels final : public LateWork {
 public:
  // Every part of `bands` must be in `file`.
  LatePanels(std::span<const QuantBand> bands, std::shared_ptr<const MappedFile> file);

  // Returns true if all panels are written. Then the file is not read again.
  bool written() const { return done_.load(std::memory_order_acquire) == panels_; }
  bool written(std::int64_t panel) const {
    return pieces_[static_cast<std::size_t>(panel / kPanelsAtOnce)].load(std::memory_order_acquire);
  }
  // Ends the process if the file was shortened: answers with wrong weights may have been sent. The process
  // that started this engine starts it again, and then loading reports the error. Call it after each read.
  void check_file() const;

  bool write_some() override;
  std::size_t unwritten_bytes() const override;
  // Waits for threads in write_some(), and lets later calls return false. Afterwards the bands may be
  // destroyed.
  void stop();

 private:
  static constexpr std::int64_t kPanelsAtOnce = 8;
  void write_piece(std::int64_t first, std::int64_t end);

  const std::span<const QuantBand> bands_;
  const std::shared_ptr<const MappedFile> file_;
  std::size_t bytes_ = 0;
  std::int64_t panels_ = 0;
  std::vector<std::atomic<bool>> pieces_;  // whether kPanelsAtOnce panels are written
  std::atomic<std::int64_t> done_ = 0;     // number of written panels
  std::mutex mutex_;
  std::condition_variable idle_;
  std::int64_t begun_ = 0;
  int writers_ = 0;
  bool stopped_ = false;
};

}  // namespace octavo::cpu
