// Processors and NUMA nodes of this host.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

// Parses a list such as "0-3,8", as the kernel and numactl write it. The result is sorted. Returns
// invalid_argument if the text is not such a list.
Result<std::vector<int>> read_processor_list(std::string_view text);

// Returns the usable processors of each NUMA node; the index is the number of the node. Returns an empty
// list if /sys below `root` has no nodes.
std::vector<std::vector<int>> numa_nodes(const std::filesystem::path& root = "/");

// Binds the calling thread, and threads that it starts later, to these processors. Returns invalid_argument
// if the process may use none of them.
Result<> bind_thread(std::span<const int> processors);

// Lets the calling thread run as soon as it wakes up, even if compute threads keep all processors busy. For
// threads that work for microseconds and then wait again. Since Linux 6.6, a thread runs for a slice of 3
// ms before a woken thread may interrupt it; since 6.12, a thread with a shorter slice may interrupt it
// earlier. Processes that the thread starts get the default slice. Has no effect on older kernels, or on
// threads with a raised priority or another scheduling policy.
void shorten_slice();

}  // namespace octavo
