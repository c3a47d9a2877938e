// Properties of this machine and their limits for an engine, for `octavo doctor`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace octavo {

struct Machine {
  std::string processor;  // name; "": unknown
  int processors = 0;     // number of online processors
  int usable = 0;         // number that this process may use (affinity, CPU quota of its cgroup)
  int numa_nodes = 1;
  std::string instructions;                   // instruction set of the CPU backend; "": the CPU is not
                                              // supported
  std::string lacking;                        // reason why the best instruction set, or any, is not used
  std::uint64_t memory = 0;                   // bytes
  std::uint64_t available = 0;                // bytes
  std::optional<std::uint64_t> memory_limit;  // limit of the cgroup in bytes
  std::string huge_pages;        // transparent huge pages: "always", "madvise", "never"; "": unknown
  std::string governor;          // frequency governor; "": unknown
  std::uint64_t open_files = 0;  // limit of this process on open files
  std::string gpu;               // name of the GPU, or the reason why none is used
  std::string nccl;              // version, or the reason why NCCL is missing
  std::string model_cache;                    // folder
  std::uint64_t model_cache_free = 0;         // bytes
};

// Reads /proc and /sys below `root`.
void read_machine_files(const std::filesystem::path& root, Machine& machine);

// The machine's properties, one on each line, then recommended changes with instructions.
std::string doctor_page(const Machine& machine);
// Only the recommended changes, one on each line.
std::vector<std::string> advice(const Machine& machine);

}  // namespace octavo
