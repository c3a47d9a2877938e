// What this machine is and which limits it sets, as far as an engine notices: for `octavo doctor`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace octavo {

struct Machine {
  std::string processor;  // its name; "": not known
  int processors = 0;     // online
  int usable = 0;         // by this process: affinity, CPU quota of its cgroup
  int numa_nodes = 1;
  std::string instructions;                   // the set that the CPU backend takes; "": there is none
  std::string lacking;                        // why not, or why not the most able one
  std::uint64_t memory = 0;                   // bytes
  std::uint64_t available = 0;                // bytes
  std::optional<std::uint64_t> memory_limit;  // bytes, of the cgroup
  std::string huge_pages;                     // transparent ones: "always", "madvise", "never"; "": not known
  std::string governor;                       // of the processors' clock; "": not known
  std::uint64_t open_files = 0;               // most of this process
  std::string gpu;                            // its name, or why none is used
  std::string nccl;                           // its version, or why there is none
  std::string model_cache;                    // folder
  std::uint64_t model_cache_free = 0;         // bytes
};

// Fills in what /proc and /sys below `root` tell.
void read_machine_files(const std::filesystem::path& root, Machine& machine);

// What is there, a line each, and then what should be changed and how.
std::string doctor_page(const Machine& machine);
// The second part alone: a line each.
std::vector<std::string> advice(const Machine& machine);

}  // namespace octavo
