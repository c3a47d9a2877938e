// The memory that this process may have: the machine's, within what its cgroup (version 1 or 2) allows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace octavo {

// In bytes.
struct HostMemory {
  std::uint64_t machine = 0;  // 0: not known
  std::optional<std::uint64_t> limit =
      {};  // of the cgroup or of one above it, where it is below the machine's
  // What could be had now without swapping, pages of files that could be dropped included; 0: not known.
  std::uint64_t available = 0;

  std::uint64_t all() const { return limit.value_or(machine); }
};

// As /proc and /sys below `root` tell.
HostMemory host_memory(const std::filesystem::path& root = "/");

}  // namespace octavo
