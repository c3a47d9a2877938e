// The processors of this host, and their NUMA nodes.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

// Parses a list such as "0-3,8", in the format of the kernel and of numactl. The result is ascending.
// Errors: invalid_argument.
Result<std::vector<int>> read_processor_list(std::string_view text);

// For each NUMA node, by number: the processors that this process may use; empty for a node without
// processors. The result is empty if /sys below `root` lists no nodes.
std::vector<std::vector<int>> numa_nodes(const std::filesystem::path& root = "/");

// Restricts the calling thread, and threads that it starts later, to these processors. Returns
// invalid_argument if the process may use none of them.
Result<> bind_thread(std::span<const int> processors);

// Lets the calling thread run as soon as it wakes, even if computing threads keep all processors busy. For
// threads that work for microseconds and then wait again. Linux from 6.6 on gives each thread a slice (3 ms)
// that a thread that wakes does not interrupt, unless its own slice is shorter (6.12 and later). A process
// that this thread starts has the default slice again. Does nothing on older kernels, and for threads with a
// raised priority or another scheduling policy.
void shorten_slice();

}  // namespace octavo
