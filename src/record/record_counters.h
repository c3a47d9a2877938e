#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace octavo {

// Reasons why a finished request is not recorded.
enum class RecordDrop : std::uint8_t {
  queue,
  disk,  // the disk is full or reported an error
  size,
};
inline constexpr int kRecordDrops = 3;
inline constexpr std::array<std::string_view, kRecordDrops> kRecordDropNames = {"queue", "disk", "size"};

struct RecordCounters {
  std::atomic<std::int64_t> written = 0;
  std::array<std::atomic<std::int64_t>, kRecordDrops> dropped{};  // by RecordDrop

  void drop(RecordDrop reason) { ++dropped[static_cast<std::size_t>(reason)]; }
};

RecordCounters& record_counters();

// Returns the counters of this process in Prometheus' text format.
std::string record_metrics();

}  // namespace octavo
