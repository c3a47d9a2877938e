#include "app/plan_search.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <optional>

#include "fleet/plan/device_search.h"
#include "local/progress.h"
#include "timing/read_timing.h"

namespace octavo {
namespace {

// Describes a replica of this kind. Error: the model does not fit.
Result<fleet::SimulationOptions> describe_kind(SimulationFlags flags, const std::string& device, int devices,
                                               int batch, bool pools) {
  flags.device = device;
  flags.tensor_parallel_size = devices;
  flags.options.scheduler.max_num_seqs = batch;
  flags.options.prefill.replicas = pools ? 1 : 0;  // so that prefill replicas are described, too
  TRY_VOID(describe_replica(flags));
  return flags.options;
}

class SearchBars {
 public:
  void show(const std::string& kind, std::size_t done, std::size_t all) {
    if (kind != kind_) bar_.emplace(kind_ = kind, "requests", 1);
    bar_->show(done, all);
  }

 private:
  std::string kind_;
  std::optional<ProgressBar> bar_;
};

}  // namespace

void add_search_flags(CLI::App& command, SearchFlags& c, SimulationFlags& replica) {
  const char* group = "Search";
  CLI::Option* devices =
      command
          .add_option("--devices", c.devices,
                      "Find the cheapest fleet among these devices, known names or JSON files, instead of "
                      "planning one --device")
          ->delimiter(',')
          ->group(group);
  for (const char* one : {"--device", "--tensor-parallel-size", "--max-num-seqs", "--timing", "--window"})
    devices->excludes(command.get_option(one));
  const auto searched = [&](CLI::Option* option) { option->delimiter(',')->needs(devices)->group(group); };
  searched(command
               .add_option("--prices", c.prices,
                           "Price of each of the --devices for an hour; not needed for a single device")
               ->check(CLI::Range(1e-6, 1e9)));
  searched(command.add_option("--tensor-parallel-sizes", c.sizes, "Devices of a replica that are tried")
               ->check(CLI::Range(1, 1024))
               ->capture_default_str());
  searched(command.add_option("--batch-sizes", c.batches, "Values of --max-num-seqs that are tried")
               ->check(CLI::Range(1, 1 << 16))
               ->capture_default_str());
  command.add_flag("--pools", c.pools, "Also try separate prefill and decode pools")
      ->needs(devices)
      ->group(group);
  add_prefill_flags(command, group, replica);
}

Result<std::string> run_search(const SearchFlags& c, const SimulationFlags& replica,
                               const fleet::Trace& trace, const fleet::Slo& slo, int replicas_max) {
  if (c.devices.size() > 1 && c.prices.size() != c.devices.size())
    return invalid("prices", "has {} prices for {} devices: give one price per hour for each device",
                   c.prices.size(), c.devices.size());
  for (const std::string& device : c.devices)
    if (const auto known = read_device_figures(device); !known)
      return invalid("devices", "{}", known.error().message);
  std::vector<fleet::ReplicaKind> kinds;
  for (std::size_t i = 0; i < c.devices.size(); ++i)
    for (const int devices : c.sizes)
      for (const int batch : c.batches) {
        auto options = describe_kind(replica, c.devices[i], devices, batch, c.pools);
        if (!options && options.error().field != "model") return std::unexpected(options.error());
        kinds.push_back({.device = c.devices[i],
                         .devices = devices,
                         .max_num_seqs = batch,
                         .price = i < c.prices.size() ? c.prices[i] : 1,
                         .options = std::move(options)});
      }
  SearchBars bars;
  TRY(const fleet::DeviceSearch search,
      fleet::search_devices(
          kinds, trace, slo, {.replicas_max = replicas_max, .pools = c.pools},
          [&](const std::string& kind, std::size_t done, std::size_t all) { bars.show(kind, done, all); }));
  fmt::print("{}", device_search_text(search, slo));
  return boost::json::serialize(device_search_json(search, slo)) + "\n";
}

}  // namespace octavo
