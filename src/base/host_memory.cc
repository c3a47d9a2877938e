#include "base/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

// File names of cgroup version 1 or 2.
struct Names {
  std::string_view limit, used;
  std::string_view files, idle_files;  // fields in memory.stat: file pages that can be dropped
};
constexpr Names kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file",
                          "total_inactive_file"};
constexpr Names kVersion2{"memory.max", "memory.current", "active_file", "inactive_file"};

// Returns kNone if the file is missing or contains "max".
std::uint64_t number_in(const fs::path& path) {
  std::uint64_t value = 0;
  return std::ifstream(path) >> value ? value : kNone;
}

std::uint64_t droppable(const fs::path& folder, const Names& names) {
  std::ifstream file(folder / "memory.stat");
  std::string key;
  std::uint64_t bytes = 0, sum = 0;
  while (file >> key >> bytes)
    if (key == names.files || key == names.idle_files) sum += bytes;
  return sum;
}

struct Limits {
  std::uint64_t limit = kNone;
  std::uint64_t room = kNone;  // bytes left below the limit
};

// Applies the limits of the cgroup `path` and of all its parents up to `top`.
void take_limits(const fs::path& top, std::string_view path, const Names& names, Limits& limits) {
  fs::path folder = top;
  if (path.starts_with('/')) folder /= path.substr(1);
  for (;; folder = folder.parent_path()) {
    if (const std::uint64_t limit = number_in(folder / names.limit); limit != kNone) {
      const std::uint64_t used = number_in(folder / names.used);
      const std::uint64_t kept = used == kNone ? 0 : used - std::min(used, droppable(folder, names));
      limits.limit = std::min(limits.limit, limit);
      limits.room = std::min(limits.room, limit - std::min(limit, kept));
    }
    if (folder == top || !folder.has_relative_path()) return;
  }
}

// Lines of /proc/self/cgroup are "9:cpu,memory:/a/b" in version 1 and "0::/a/b" in version 2.
Limits cgroup_limits(const fs::path& root) {
  Limits limits;
  const fs::path top = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string_view path = std::string_view(line).substr(second + 1);
    if (controllers == ",,") take_limits(top, path, kVersion2, limits);
    if (controllers.contains(",memory,")) take_limits(top / "memory", path, kVersion1, limits);
  }
  return limits;
}

}  // namespace

HostMemory host_memory(const fs::path& root) {
  HostMemory memory;
  std::ifstream file(root / "proc/meminfo");
  std::string key, unit;
  std::uint64_t kib = 0;
  while (file >> key >> kib && std::getline(file, unit)) {
    if (key == "MemTotal:") memory.machine = kib * 1024;
    if (key == "MemAvailable:") memory.available = kib * 1024;
  }
  const Limits limits = cgroup_limits(root);
  if (memory.machine == 0 || limits.limit >= memory.machine) return memory;
  memory.limit = limits.limit;
  if (memory.available > 0)
    memory.available = std::max<std::uint64_t>(1, std::min(memory.available, limits.room));
  return memory;
}

}  // namespace octavo
