// This machine and the limits that it sets for an engine: for `octavo doctor`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace octavo {

struct Machine {
  std::string processor;  // its name; "": unknown
  int processors = 0;     // online
  int usable = 0;         // usable by this process: affinity, CPU quota of its cgroup
  int numa_nodes = 1;
  std::string instructions;                   // instruction set that the CPU backend uses; "": none
  std::string lacking;                        // why not, or why not the best one
  std::uint64_t memory = 0;                   // bytes
  std::uint64_t available = 0;                // bytes
  std::optional<std::uint64_t> memory_limit;  // bytes, of the cgroup
  std::string huge_pages;        // transparent huge pages: "always", "madvise", "never"; "": unknown
  std::string governor;          // frequency governor of the processors; "": unknown
  std::uint64_t open_files = 0;  // this process's limit
  std::string gpu;               // its name, or why none is used
  std::string nccl;              // its version, or the reason why it is missing
  std::string model_cache;                    // folder
  std::uint64_t model_cache_free = 0;         // bytes
};

// Reads /proc and /sys below `root`.
void read_machine_files(const std::filesystem::path& root, Machine& machine);

// The machine's properties, one per line, then recommended changes and how to make them.
std::string doctor_page(const Machine& machine);
// Only the recommended changes, one per line.
std::vector<std::string> advice(const Machine& machine);

}  // namespace octavo
