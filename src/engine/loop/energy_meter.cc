#include "engine/loop/energy_meter.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

namespace octavo {
namespace {

std::optional<std::int64_t> read_counter(int file) {
  char text[32];
  const ssize_t size = pread(file, text, sizeof text, 0);
  std::int64_t value = 0;
  if (size <= 0 || std::from_chars(text, text + size, value).ec != std::errc()) return std::nullopt;
  return value;
}

bool is_package(const std::filesystem::path& domain) {
  std::string name;
  std::ifstream(domain / "name") >> name;
  return name.starts_with("package");
}

}  // namespace

EnergyMeter::EnergyMeter(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator domain(folder, error);
  for (; !error && domain != std::filesystem::directory_iterator(); domain.increment(error)) {
    if (!is_package(domain->path())) continue;
    const int file = open((domain->path() / "energy_uj").c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    std::int64_t range = 0;
    std::ifstream(domain->path() / "max_energy_range_uj") >> range;
    if (const auto value = read_counter(file))
      packages_.push_back({file, range, *value});
    else
      close(file);
  }
}

EnergyMeter::~EnergyMeter() {
  for (const Package& package : packages_) close(package.file);
}

double EnergyMeter::microjoules_per_ns(std::int64_t now_ns) {
  if (packages_.empty() || now_ns - sampled_ns_ < kSampleNs) return power_;
  std::int64_t used = 0;
  for (Package& package : packages_) {
    const std::int64_t value = read_counter(package.file).value_or(package.last);
    used += value >= package.last ? value - package.last : value + package.range - package.last;
    package.last = value;
  }
  if (sampled_ns_ != 0) power_ = static_cast<double>(used) / static_cast<double>(now_ns - sampled_ns_);
  sampled_ns_ = now_ns;
  return power_;
}

}  // namespace octavo
