#include "base/processors.h"

#include <fmt/ranges.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <string>

namespace octavo {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool may_use(const cpu_set_t& allowed, int processor) {
  return CPU_ISSET(static_cast<std::size_t>(processor), &allowed);
}

}  // namespace

Result<std::vector<int>> read_processor_list(std::string_view text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](int& value) {
    const auto [next, error] = std::from_chars(at, end, value);
    at = next;
    return error == std::errc() && value >= 0 && value < CPU_SETSIZE;
  };
  for (;;) {
    int first = 0;
    bool good = number(first);
    int last = first;
    if (good && at < end && *at == '-') {
      ++at;
      good = number(last) && last >= first;
    }
    if (!good || (at < end && *at != ','))
      return failure(ErrorCode::invalid_argument,
                     "\"{}\" must be a list of processors such as 0-3,8, each below {}", text, CPU_SETSIZE);
    for (int i = first; i <= last; ++i) numbers.push_back(i);
    if (at == end) break;
    ++at;
  }
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  return numbers;
}

std::vector<std::vector<int>> numa_nodes(const std::filesystem::path& root) {
  const std::filesystem::path folder = root / "sys/devices/system/node";
  const auto listed = read_processor_list(first_line(folder / "online"));
  if (!listed) return {};
  cpu_set_t allowed;
  const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  std::vector<std::vector<int>> nodes(static_cast<std::size_t>(listed->back()) + 1);
  for (const int node : *listed) {
    auto processors = read_processor_list(first_line(folder / ("node" + std::to_string(node)) / "cpulist"));
    if (!processors) continue;  // the node has memory but no processors
    if (known) std::erase_if(*processors, [&](int processor) { return !may_use(allowed, processor); });
    nodes[static_cast<std::size_t>(node)] = *std::move(processors);
  }
  return nodes;
}

Result<> bind_thread(std::span<const int> processors) {
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const int processor : processors) CPU_SET(static_cast<std::size_t>(processor), &wanted);
  if (sched_setaffinity(0, sizeof wanted, &wanted) != 0)
    return failure(ErrorCode::invalid_argument, "this process may not use any of the processors {}",
                   fmt::join(processors, ","));
  return {};
}

void shorten_slice() {
  const int nice = getpriority(PRIO_PROCESS, 0);  // nice value of the calling thread
  if (nice < 0 || sched_getscheduler(0) != SCHED_OTHER) return;
  // First version of the kernel's struct sched_attr.
  struct {
    std::uint32_t size = 48;
    std::uint32_t policy = SCHED_OTHER;
    std::uint64_t flags = 1;  // SCHED_FLAG_RESET_ON_FORK
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t slice_ns = 100'000;  // shortest slice that the kernel accepts
    std::uint64_t deadline = 0;
    std::uint64_t period = 0;
  } attributes;
  attributes.nice = nice;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace octavo
