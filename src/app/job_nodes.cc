#include "app/job_nodes.h"

#include <charconv>

namespace octavo {
namespace {

constexpr int kHostsMax = 64;

Result<int> number_of(const Environment& environment, const char* name, int least, int most) {
  const std::string text = environment(name);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    return invalid(name, "must be a number in [{}, {}], got \"{}\"", least, most, text);
  return value;
}

struct Variables {
  const char *count, *rank, *leader;
};
constexpr Variables kSlurm{"SLURM_STEP_NUM_NODES", "SLURM_NODEID", "SLURM_STEP_NODELIST"};
constexpr Variables kLeaderWorkerSet{"LWS_GROUP_SIZE", "LWS_WORKER_INDEX", "LWS_LEADER_ADDRESS"};

// Returns gpu003 for the Slurm list "gpu[003-006,9],login".
std::string first_host(const std::string& list) {
  const std::size_t bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const std::size_t end = list.find_first_of("-,]", bracket);
  if (end == std::string::npos) return "";
  const std::size_t close = list.find(']', bracket);
  const std::size_t rest = close == std::string::npos ? list.size() : close + 1;
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) +
         list.substr(rest, list.find(',', rest) - rest);
}

}  // namespace

Result<NodeOptions> nodes_of_job(const Environment& environment) {
  for (const Variables& names : {kSlurm, kLeaderWorkerSet}) {
    if (environment(names.count).empty()) continue;
    TRY(const int count, number_of(environment, names.count, 1, kHostsMax));
    if (count == 1) continue;
    TRY(const int rank, number_of(environment, names.rank, 0, count - 1));
    const std::string leader = first_host(environment(names.leader));
    if (leader.empty()) return invalid(names.leader, "must name the first of {} hosts", count);
    return NodeOptions{.count = count, .rank = rank, .master_addr = leader};
  }
  return NodeOptions{};
}

}  // namespace octavo
