#include "app/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/host_memory.h"
#include "base/processors.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kFilesWanted = 4096;
constexpr std::uint64_t kCacheWanted = 10'000'000'000;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns "madvise" for "always [madvise] never".
std::string chosen(const std::string& choices) {
  const std::size_t begin = choices.find('['), end = choices.find(']');
  return begin < end && end != std::string::npos ? choices.substr(begin + 1, end - begin - 1) : "";
}

// Returns 0 if the list is invalid.
int listed(const std::string& list) {
  const auto numbers = read_processor_list(list);
  return numbers ? static_cast<int>(numbers->size()) : 0;
}

// Counts the display and 3D controllers of NVIDIA.
int nvidia_cards(const fs::path& devices) {
  std::error_code error;
  int count = 0;
  for (const auto& device : fs::directory_iterator(devices, error))
    if (first_line(device.path() / "vendor") == "0x10de" &&
        first_line(device.path() / "class").starts_with("0x03"))
      ++count;
  return count;
}

std::string gigabytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) * 1e-9);
}

}  // namespace

void read_machine_files(const fs::path& root, Machine& machine) {
  std::ifstream processors(root / "proc/cpuinfo");
  for (std::string line; machine.processor.empty() && std::getline(processors, line);)
    if (const std::size_t colon = line.find(": ");
        line.starts_with("model name") && colon != std::string::npos)
      machine.processor = line.substr(colon + 2);
  const HostMemory memory = host_memory(root);
  machine.memory = memory.machine;
  machine.available = memory.available;
  machine.memory_limit = memory.limit;
  machine.processors = listed(first_line(root / "sys/devices/system/cpu/online"));
  machine.numa_nodes = std::max(1, listed(first_line(root / "sys/devices/system/node/online")));
  machine.nvidia_cards = nvidia_cards(root / "sys/bus/pci/devices");
  machine.huge_pages = chosen(first_line(root / "sys/kernel/mm/transparent_hugepage/enabled"));
  machine.governor = first_line(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
}

void examine_model_cache(Machine& machine) {
  std::error_code error;
  fs::path folder = fs::absolute(machine.model_cache, error);
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  if (!fs::is_directory(folder, error))
    machine.model_cache_problem = fmt::format("{} is not a folder", folder.string());
  else if (::access(folder.c_str(), W_OK | X_OK) != 0)
    machine.model_cache_problem =
        fmt::format("{}: {}", folder.string(), std::generic_category().message(errno));
  const auto space = fs::space(folder, error);
  machine.model_cache_free = error ? 0 : space.available;
}

std::vector<std::string> advice(const Machine& m) {
  std::vector<std::string> out;
  if (m.instructions.empty())
    out.push_back("processor: " + m.lacking + "; only --device reference runs on this processor");
  if (m.huge_pages == "never")
    out.emplace_back(
        "huge pages: off, so large models read weights more slowly: echo madvise > "
        "/sys/kernel/mm/transparent_hugepage/enabled");
  if (m.governor == "powersave")
    out.emplace_back(
        "clock: the CPU governor is powersave, which lowers the clock: cpupower frequency-set -g "
        "performance");
  if (m.numa_nodes > 1)
    out.push_back(
        fmt::format("memory: this machine has {} NUMA nodes, and weights stay on the node of the thread that "
                    "reads them first: start one process per node with --data-parallel-size {} or "
                    "--tensor-parallel-size {}, or use numactl --interleave=all",
                    m.numa_nodes, m.numa_nodes, m.numa_nodes));
  if (m.nvidia_cards > 0 && !m.gpu)
    out.push_back(fmt::format("gpu: this machine has {} NVIDIA GPU{}, but {}", m.nvidia_cards,
                              m.nvidia_cards == 1 ? "" : "s", m.gpu.error().message));
  if (m.nvidia_cards > 1 && !m.nccl)
    out.emplace_back(
        "nccl: without it, ranks on several GPUs exchange values through host memory: pip install "
        "nvidia-nccl-cu13, and add the folder of libnccl.so.2 to LD_LIBRARY_PATH");
  if (m.open_files < kFilesWanted)
    out.push_back(
        fmt::format("open files: the limit is {}, and each connection needs one: ulimit -n 65536, or "
                    "LimitNOFILE=65536 in a systemd unit",
                    m.open_files));
  if (!m.model_cache_problem.empty())
    out.push_back(
        fmt::format("model cache: {} cannot be written ({}), so models of the Hub cannot be "
                    "downloaded: set HF_HOME to a folder that can be written",
                    m.model_cache, m.model_cache_problem));
  else if (m.model_cache_free < kCacheWanted)
    out.push_back(
        fmt::format("model cache: {} has only {} of free space: set HF_HOME to a larger disk, or delete "
                    "models with `octavo rm`",
                    m.model_cache, gigabytes(m.model_cache_free)));
  return out;
}

std::string doctor_page(const Machine& m) {
  std::string out;
  const auto line = [&](std::string_view topic, const std::string& text) {
    fmt::format_to(std::back_inserter(out), "{:<14}{}\n", topic, text);
  };
  line("processor", fmt::format("{}, {} of {} processors usable, {} NUMA node{}",
                                m.processor.empty() ? "name not known" : m.processor, m.usable, m.processors,
                                m.numa_nodes, m.numa_nodes == 1 ? "" : "s"));
  line("instructions", fmt::format("{}{}{}", m.instructions.empty() ? "none" : m.instructions,
                                   m.lacking.empty() ? "" : "; ", m.lacking));
  line("memory",
       fmt::format("{}, {} available, {}", gigabytes(m.memory), gigabytes(m.available),
                   m.memory_limit ? gigabytes(*m.memory_limit) + " by the cgroup" : "no cgroup limit"));
  line("huge pages", m.huge_pages.empty() ? "not known" : m.huge_pages);
  if (!m.governor.empty()) line("clock", "governor " + m.governor);
  line("gpu", m.gpu ? *m.gpu : m.gpu.error().message);
  line("nccl",
       m.nccl ? *m.nccl
              : m.nccl.error().message + "; only ranks on several GPUs use it: pip install nvidia-nccl-cu13");
  line("open files", std::to_string(m.open_files));
  line("model cache",
       fmt::format("{}, {} free{}", m.model_cache, gigabytes(m.model_cache_free),
                   m.model_cache_problem.empty() ? "" : ", cannot be written: " + m.model_cache_problem));
  const std::vector<std::string> changes = advice(m);
  out += changes.empty() ? "\nNothing to change.\n" : "\nTo change:\n";
  for (const std::string& change : changes) out += "- " + change + "\n";
  return out;
}

}  // namespace octavo
