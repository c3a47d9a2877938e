// Quantised panels that are written while the matrix is already in use.
//
// Writing the panels of a model takes longer than everything else at its start: it reads the file and touches
// as much new memory. So an engine can start with the blocks in the mapped file. Threads write the panels
// later (late_writer.h). A product writes a missing panel to working memory.
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

  // Returns true if all panels are written.
  bool written() const { return written_.load(std::memory_order_acquire); }
  // Returns the file, which stays mapped while the caller holds it; null if all panels are written.
  std::shared_ptr<const MappedFile> file() const { return file_.load(); }

  // Returns true if the calling thread must write the panel, with write(): nobody has begun to write it.
  bool begin(std::int64_t panel);
  // Writes panel i of a band, which has the number `panel`.
  void write(const QuantBand& band, std::int64_t i, std::int64_t panel);
  // Lets a product write another eighth of the panels. If it wrote all of them, the first step would wait for
  // as much new memory as the model has bytes.
  void begin_product();
  // Returns whether the panel is written. Writes it if the product may do so, and nobody has begun to.
  bool ready(const QuantBand& band, std::int64_t i, std::int64_t panel);

  // Call it after a read of the rows of panel i of a band. Lets their pages leave the process's memory, so
  // that it does not hold both the file and the panels.
  void end_read(const MappedFile& file, const QuantBand& band, std::int64_t i) const;
  // Ends the process if the file was changed or shortened, because answers with wrong weights may have been
  // sent. The process that started this engine starts it again, and then loading reports the error.
  static void check_file(const MappedFile& file);

  bool write_some() override;
  std::size_t unwritten_bytes() const override;
  // Waits for threads in write_some(), and lets later calls return false. Afterwards the bands may be
  // destroyed.
  void stop();

 private:
  // Panels that write_some() writes, and whose pages of the file are released together.
  static constexpr std::int64_t kPiece = 8;
  static constexpr std::int64_t kProducts = 8;  // products that may write all panels
  enum State : std::uint8_t { kUnwritten, kBegun, kWritten };

  const std::span<const QuantBand> bands_;
  std::atomic<std::shared_ptr<const MappedFile>> file_;  // null after all panels are written
  std::size_t bytes_ = 0;
  std::vector<std::atomic<std::uint8_t>> states_;  // [panel]
  std::atomic<std::int64_t> done_ = 0;             // number of written panels
  std::atomic<bool> written_ = false;
  // Products may write the panels before this one. They are contiguous, because the system provides new
  // memory in huge pages.
  std::atomic<std::int64_t> allowed_ = 0;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::int64_t next_ = 0;  // first panel for write_some()
  int writers_ = 0;
  std::atomic<bool> stopped_ = false;  // changes only under mutex_
};

}  // namespace octavo::cpu
