// Collects the properties of this machine for `octavo doctor`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace octavo {

struct Machine {
  std::string processor;  // name of the CPU, or ""
  int processors = 0;     // online processors
  // number of processors that this process may use (affinity mask and CPU quota of the cgroup)
  int usable = 0;
  int numa_nodes = 1;
  // name of the CPU backend's instruction set; "": the CPU is not supported
  std::string instructions;
  // why a better instruction set is not available, or why the CPU is not supported
  std::string lacking;
  std::uint64_t memory = 0;                   // bytes
  std::uint64_t available = 0;                // bytes
  std::optional<std::uint64_t> memory_limit;  // bytes; limit of the cgroup
  // transparent huge pages: "always", "madvise", "never", or "" if unknown
  std::string huge_pages;
  std::string governor;
  std::uint64_t open_files = 0;
  int nvidia_cards = 0;                       // NVIDIA GPUs on the PCI bus, with or without a driver
  Result<std::string> gpu;                    // name of the GPU, or why no GPU is used
  Result<std::string> nccl;                   // version of NCCL, or why NCCL is missing
  std::string model_cache;                    // folder
  std::uint64_t model_cache_free = 0;         // bytes
  std::string model_cache_problem{};          // why the folder cannot be written; "": it can
};

// Reads files in /proc and /sys below `root`.
void read_machine_files(const std::filesystem::path& root, Machine& machine);

// Reads the free space of `model_cache`, and whether it can be written. The folder need not exist yet.
void examine_model_cache(Machine& machine);

// Returns a line for each property, then the advice.
std::string doctor_page(const Machine& machine);
// Returns one line for each piece of advice.
std::vector<std::string> advice(const Machine& machine);

}  // namespace octavo
