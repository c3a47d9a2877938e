// The processors of this host, and their NUMA nodes.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

// Parses a list such as "0-3,8", the format of the kernel and numactl, in ascending order. Errors:
// invalid_argument.
Result<std::vector<int>> read_processor_list(std::string_view text);

// For each NUMA node, by number: the processors that this process may use. A node without processors has an
// empty list. Empty if /sys below `root` lists no nodes.
std::vector<std::vector<int>> numa_nodes(const std::filesystem::path& root = "/");

// Restricts the calling thread, and threads that it starts later, to these processors. Errors:
// invalid_argument if it may use none of them.
Result<> bind_thread(std::span<const int> processors);

}  // namespace octavo
