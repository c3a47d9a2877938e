#include "engine/load/placement.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "base/processors.h"
#include "base/thread_pool.h"

namespace octavo {
namespace {

Result<> check_count(std::string_view field, std::size_t given, int processes) {
  if (static_cast<int>(given) == processes) return {};
  return invalid(field,
                 "has {} entries for {} engine processes on this host: give one entry for each process",
                 given, processes);
}

int processes_of_host(const EngineOptions& options) {
  // data_parallel_size 0 is rejected later
  return options.parallel.data_parallel_size * std::max(1, options.parallel.ranks_of_host());
}

}  // namespace

Result<std::string> share_processors(const NumaOptions& options, int processes,
                                     std::span<const std::vector<int>> nodes) {
  if (!options.processors.empty()) {
    TRY_VOID(check_count("numa_bind_cpus", options.processors.size(), processes));
    for (const std::string& list : options.processors)
      if (const auto read = read_processor_list(list); !read)
        return invalid("numa_bind_cpus", "{}", read.error().message);
    return fmt::format("{}", fmt::join(options.processors, "|"));
  }
  if (!options.nodes.empty()) {
    TRY_VOID(check_count("numa_bind_nodes", options.nodes.size(), processes));
    std::vector<std::string> lists;
    for (const int node : options.nodes) {
      if (node < 0 || node >= std::ssize(nodes) || nodes[static_cast<std::size_t>(node)].empty())
        return invalid("numa_bind_nodes", "NUMA node {} has no processor", node);
      lists.push_back(fmt::format("{}", fmt::join(nodes[static_cast<std::size_t>(node)], ",")));
    }
    return fmt::format("{}", fmt::join(lists, "|"));
  }
  std::vector<std::vector<int>> used;
  std::ranges::copy_if(nodes, std::back_inserter(used), [](const auto& node) { return !node.empty(); });
  const int count = static_cast<int>(used.size());
  if (!options.bind || processes == 1 || count < 2) return "";
  std::vector<std::string> lists;
  for (int p = 0; p < processes; ++p) {
    const int first = p * count / processes, last = std::max(first + 1, (p + 1) * count / processes);
    const auto own =
        std::span(used).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
    lists.push_back(fmt::format("{}", fmt::join(own | std::views::join, ",")));
  }
  return fmt::format("{}", fmt::join(lists, "|"));
}

Result<EngineOptions> placed(EngineOptions options, int rank) {
  const int processes = processes_of_host(options);
  const int divided = std::max(1, options.device.threads / processes);
  if (options.device.processors.empty()) {
    if (processes > 1)
      options.device.threads =
          options.device.threads > 0 ? divided : std::max(1, usable_processors() / processes);
    return options;
  }
  std::vector<std::string> lists;
  for (const auto list : options.device.processors | std::views::split('|'))
    lists.emplace_back(list.begin(), list.end());
  TRY_VOID(check_count("processors", lists.size(), processes));
  const int ranks = std::max(1, options.parallel.ranks_of_host());
  const std::string& own = lists[static_cast<std::size_t>(options.index * ranks + rank % ranks)];
  TRY(const std::vector<int> processors, read_processor_list(own));
  TRY_VOID(bind_thread(processors));
  const auto sharers = static_cast<int>(std::ranges::count(lists, own));
  options.device.threads = options.device.threads > 0 ? divided : std::max(1, usable_processors() / sharers);
  return options;
}

}  // namespace octavo
