#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace octavo {

// Reason why a finished request is not in the records.
enum class RecordDrop : std::uint8_t {
  queue,  // the queue to the disk is full
  disk,   // the disk is full or reported another error
  size,   // the record is larger than a file
};
inline constexpr int kRecordDrops = 3;
inline constexpr std::array<std::string_view, kRecordDrops> kRecordDropNames = {"queue", "disk", "size"};

struct RecordCounters {
  std::atomic<std::int64_t> written = 0;
  std::array<std::atomic<std::int64_t>, kRecordDrops> dropped{};  // index: RecordDrop

  void drop(RecordDrop reason) { ++dropped[static_cast<std::size_t>(reason)]; }
};

RecordCounters& record_counters();

// Returns the counters of this process in Prometheus' text format.
std::string record_metrics();

}  // namespace octavo
