// octavo bench ops: compares each operator with the limits of the machine, which it measures between the
// runs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/commands.h"
#include "bench/machine_limits.h"
#include "bench/op_cases.h"
#include "kernels/backends.h"
#include "local/flag_table.h"

namespace octavo {
namespace {

struct OpsCommand {
  std::string device = "cpu";
  int threads = 0;
  std::string isa;
  std::vector<std::string> filter;
  int repeats = 9;
  bool json = false;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Medians of one case. Fractions are relative to limits that were measured just before.
struct Finding {
  double seconds;  // time of one call
  double least_seconds;
  double of_bandwidth;
  double of_peak;

  // Fraction of the limit that applies: memory or arithmetic, whichever takes longer.
  double of_limit() const { return std::max(of_bandwidth, of_peak); }
};

Finding measure(MachineLimits& limits, const OpCase& c, int repeats) {
  c.run();
  std::vector<double> seconds, of_bandwidth, of_peak;
  for (int i = 0; i < repeats; ++i) {
    const double bandwidth = limits.bandwidth();
    const double peak = limits.peak(c.arithmetic);
    const double time = limits.seconds_of(c.run) / c.calls;
    seconds.push_back(time);
    of_bandwidth.push_back(c.bytes / time / bandwidth);
    of_peak.push_back(peak > 0 ? c.operations / time / peak : 0);
  }
  return {median(seconds), std::ranges::min(seconds), median(of_bandwidth), median(of_peak)};
}

constexpr std::string_view kRow = "{:<40} {:<22} {:<8} {:>12} {:>9} {:>10} {:>8}\n";

void print(const OpCase& c, const Finding& f) {
  const auto rate = [&](double amount) { return fmt::format("{:.1f}", amount / f.seconds / 1e9); };
  fmt::print(kRow, c.operation, c.shape, c.format, fmt::format("{:.1f}", f.seconds * 1e6),
             c.bytes > 0 ? rate(c.bytes) : "", rate(c.operations), fmt::format("{:.2f}", f.of_limit()));
  std::fflush(stdout);
}

boost::json::object json_of(const OpCase& c, const Finding& f) {
  return {{"operation", c.operation},
          {"shape", c.shape},
          {"format", c.format},
          {"seconds", f.seconds},
          {"least_seconds", f.least_seconds},
          {"bytes", c.bytes},
          {"operations", c.operations},
          {"share_of_bandwidth", f.of_bandwidth},
          {"share_of_peak", f.of_peak},
          {"share_of_limit", f.of_limit()}};
}

bool contains_all(std::string_view text, const std::vector<std::string>& parts) {
  return std::ranges::all_of(parts, [&](const std::string& part) { return text.contains(part); });
}

struct Machine {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<MachineLimits> limits;
  std::span<const OpShapes> shapes;
};

Result<Machine> machine_of(const OpsCommand& command) {
  if (command.device == "cuda") {
    TRY(Backend cuda, make_cuda_backend());
    auto backend = std::make_unique<Backend>(std::move(cuda));
    TRY(DeviceLimits limits, DeviceLimits::make(*backend));
    return Machine{std::move(backend), std::make_unique<DeviceLimits>(std::move(limits)), kDeviceShapes};
  }
  TRY(const CpuIsa isa, usable_isa(command.isa));
  TRY(Backend cpu, make_cpu_backend({.threads = command.threads, .isa = isa}));
  TRY(HostLimits limits, HostLimits::make(command.threads, isa));
  return Machine{std::make_unique<Backend>(std::move(cpu)), std::make_unique<HostLimits>(std::move(limits)),
                 kHostShapes};
}

Result<> bench_ops(const OpsCommand& command) {
  TRY(const Machine machine, machine_of(command));
  Backend& backend = *machine.backend;
  MachineLimits& limits = *machine.limits;
  const double bandwidth = limits.bandwidth();
  const double f32 = limits.peak(Arithmetic::f32), bf16 = limits.peak(Arithmetic::bf16),
               int8 = limits.peak(Arithmetic::int8);
  boost::json::array cases;
  if (!command.json) {
    fmt::print("{}: moves {:.1f} GB/s", backend.device->name(), bandwidth / 1e9);
    if (f32 > 0)
      fmt::print("; peaks: f32 {:.0f}, bf16 {:.0f} GFLOP/s, int8 {:.0f} GOP/s", f32 / 1e9, bf16 / 1e9,
                 int8 / 1e9);
    fmt::print("\n");
    fmt::print(kRow, "operation", "shape", "format", "microseconds", "GB/s", "GFLOP/s", "of limit");
  }
  int measured = 0;
  const OpVisitor visitor{.wanted =
                              [&](const OpCase& c) {
                                return contains_all(fmt::format("{} {} {}", c.operation, c.shape, c.format),
                                                    command.filter);
                              },
                          .measure =
                              [&](const OpCase& c) {
                                const Finding found = measure(limits, c, command.repeats);
                                ++measured;
                                if (command.json) {
                                  cases.push_back(json_of(c, found));
                                } else {
                                  print(c, found);
                                }
                              }};
  for (const OpShapes& shapes : machine.shapes)
    for (const auto part : kOpCaseParts) TRY_VOID(part(backend, shapes, visitor));
  if (measured == 0)
    return invalid("filter",
                   "must name a part of an operator's line, but no line contains '{}'; without --filter, all "
                   "operators are measured",
                   fmt::join(command.filter, "' and '"));
  if (command.json)
    fmt::print("{}\n", boost::json::serialize(boost::json::object{{"device", backend.device->name()},
                                                                  {"bytes_per_second", bandwidth},
                                                                  {"f32_flops", f32},
                                                                  {"bf16_flops", bf16},
                                                                  {"int8_ops", int8},
                                                                  {"cases", std::move(cases)}}));
  return {};
}

}  // namespace

void add_bench_ops(CLI::App& bench, Outcome& outcome) {
  auto options = std::make_shared<OpsCommand>();
  CLI::App* ops = bench.add_subcommand("ops",
                                       "Measure the speed of every operator, as a percentage of the "
                                       "machine's memory bandwidth or peak arithmetic");
  ops->add_option("--device", options->device, "Device to measure: cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  ops->add_option(
         "--cpu-threads", options->threads,
         "Number of compute threads; 0: one for each processor that this process may use. With 1, processor "
         "time is measured instead of elapsed time, because other programs disturb it less")
      ->check(number_between(0, 1024))
      ->capture_default_str();
  ops->add_option("--isa", options->isa,
                  "Instruction set, such as avx2 (default: the fastest one that the processor supports)");
  ops->add_option("--filter", options->filter,
                  "Measure only operators whose line contains this text, such as 'int4' or 'decode'; of "
                  "several texts, the line must contain all");
  ops->add_option("--repeats", options->repeats, "Number of runs per operator; the median is reported")
      ->check(number_between(1, 1 << 20))
      ->capture_default_str();
  ops->add_flag("--json", options->json, "Print JSON instead of a table");
  outcome.runs(*ops, options, bench_ops);
}

}  // namespace octavo
