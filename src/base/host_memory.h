// Memory that this process can use: that of the machine, or less if a cgroup (version 1 or 2) limits it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace octavo {

// All sizes are in bytes.
struct HostMemory {
  std::uint64_t machine = 0;  // 0: unknown
  std::optional<std::uint64_t> limit =
      {};  // lowest limit of the cgroup and its parents, if it is below the machine's memory
  // Available without swapping. Includes cached file pages that can be dropped. 0: unknown.
  std::uint64_t available = 0;

  std::uint64_t all() const { return limit.value_or(machine); }
};

// Reads files in /proc and /sys below `root`.
HostMemory host_memory(const std::filesystem::path& root = "/");

}  // namespace octavo
