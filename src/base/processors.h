// The processors of this host, and the NUMA nodes that they belong to.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

// The numbers of a list such as "0-3,8", as the kernel and numactl write it, in ascending order. Errors:
// invalid_argument.
Result<std::vector<int>> read_processor_list(std::string_view text);

// Of each NUMA node, by its number, the processors that this process may use; none of a node without any.
// Empty where /sys below `root` tells of no nodes.
std::vector<std::vector<int>> numa_nodes(const std::filesystem::path& root = "/");

// The calling thread runs on these alone, and so do the threads that it starts from now on. Errors:
// invalid_argument, when it may use none of them.
Result<> bind_thread(std::span<const int> processors);

}  // namespace octavo
