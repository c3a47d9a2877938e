#include "serve/process_metrics.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

namespace octavo {
namespace {

// Returns the fields of /proc/self/stat after the command's name (which can contain spaces). Element 0 is
// field 3 in the numbering of proc(5).
std::vector<std::string> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  return {std::istream_iterator<std::string>(rest), {}};
}

double boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;)
    if (double seconds = 0; word == "btime" && file >> seconds) return seconds;
  return 0;
}

}  // namespace

std::string process_metrics() {
  std::string text;
  const auto write = [&](std::string_view name, std::string_view type, std::string_view help, double value) {
    fmt::format_to(std::back_inserter(text),
                   "# HELP process_{0} {1}\n# TYPE process_{0} {2}\nprocess_{0} {3}\n", name, help, type,
                   value);
  };
  if (const std::vector<std::string> stat = stat_fields(); stat.size() > 21) {
    const auto number = [&](std::size_t field) {
      return std::stod(stat[field - 3]);
    };  // field: number in proc(5)
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    write("cpu_seconds_total", "counter", "User and system CPU time, in seconds.",
          (number(14) + number(15)) / ticks);
    write("start_time_seconds", "gauge", "Start time of the process, in seconds since 1970.",
          boot_time() + number(22) / ticks);
    write("virtual_memory_bytes", "gauge", "Virtual memory in bytes.", number(23));
    write("resident_memory_bytes", "gauge", "Resident memory in bytes.",
          number(24) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  }
  std::error_code unreadable;
  if (const std::filesystem::directory_iterator open("/proc/self/fd", unreadable); !unreadable)
    write("open_fds", "gauge", "Number of open file descriptors.",
          static_cast<double>(std::distance(begin(open), end(open))));
  if (rlimit limit{}; getrlimit(RLIMIT_NOFILE, &limit) == 0)
    write("max_fds", "gauge", "Maximum number of open file descriptors.",
          static_cast<double>(limit.rlim_cur));
  return text;
}

}  // namespace octavo
