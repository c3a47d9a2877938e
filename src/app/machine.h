// Properties of this machine, for `octavo doctor`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace octavo {

struct Machine {
  std::string processor;  // name of the CPU; "": unknown
  int processors = 0;     // online processors
  int usable = 0;         // processors that this process may use (affinity, CPU quota of its cgroup)
  int numa_nodes = 1;
  std::string instructions;  // instruction set of the CPU backend; "": the CPU is not supported
  std::string lacking;       // why the best instruction set, or any, is not used
  std::uint64_t memory = 0;                   // bytes
  std::uint64_t available = 0;                // bytes
  std::optional<std::uint64_t> memory_limit;  // bytes; limit of the cgroup
  std::string huge_pages;        // transparent huge pages: "always", "madvise", "never"; "": unknown
  std::string governor;          // frequency governor; "": unknown
  std::uint64_t open_files = 0;  // limit on open files of this process
  std::string gpu;               // name of the GPU, or why none is used
  std::string nccl;              // version, or why NCCL is missing
  std::string model_cache;                    // folder
  std::uint64_t model_cache_free = 0;         // bytes
};

// Reads files of /proc and /sys below `root`.
void read_machine_files(const std::filesystem::path& root, Machine& machine);

// Returns the machine's properties, one per line, then advice with instructions.
std::string doctor_page(const Machine& machine);
// Returns the advice, one item per line.
std::vector<std::string> advice(const Machine& machine);

}  // namespace octavo
