#include "engine/loop/energy_meter.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

void write_line(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text << '\n';
}

void add_domain(const std::filesystem::path& folder, const std::string& domain, const std::string& name,
                std::int64_t microjoules) {
  std::filesystem::create_directories(folder / domain);
  write_line(folder / domain / "name", name);
  write_line(folder / domain / "energy_uj", std::to_string(microjoules));
  write_line(folder / domain / "max_energy_range_uj", "1000000000");
}

TEST(EnergyMeter, WithoutCountersThePowerIsUnknown) {
  EnergyMeter meter("/nonexistent");
  EXPECT_FALSE(meter.readable());
  EXPECT_EQ(meter.microjoules_per_ns(kSecond), 0);
}

TEST(EnergyMeter, SumsThePackagesAndFollowsACounterThatStartsAgain) {
  const ScratchDirectory folder;
  add_domain(folder.path(), "intel-rapl:0", "package-0", 100);
  add_domain(folder.path(), "intel-rapl:1", "package-1", 999'000'000);
  add_domain(folder.path(), "intel-rapl:0:0", "core", 5);
  EnergyMeter meter(folder.path());
  ASSERT_TRUE(meter.readable());
  EXPECT_EQ(meter.microjoules_per_ns(kSecond), 0);
  write_line(folder.path() / "intel-rapl:0/energy_uj", "40000100");  // 40 J more than at the last sample
  write_line(folder.path() / "intel-rapl:1/energy_uj", "1000000");   // 2 J
  write_line(folder.path() / "intel-rapl:0:0/energy_uj", "40000000");
  EXPECT_EQ(meter.microjoules_per_ns(kSecond + EnergyMeter::kSampleNs - 1), 0);
  EXPECT_DOUBLE_EQ(meter.microjoules_per_ns(2 * kSecond), 42e6 / 1e9);
}

}  // namespace
}  // namespace octavo
