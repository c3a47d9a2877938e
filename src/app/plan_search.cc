#include "app/plan_search.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "fleet/plan/device_search.h"
#include "local/flag_table.h"
#include "local/progress.h"
#include "timing/read_timing.h"

namespace octavo {
namespace {

// Returns an error if the model does not fit.
Result<fleet::SimulationOptions> describe_kind(SimulationFlags flags, const std::string& device, int devices,
                                               int batch, bool pools) {
  flags.device = device;
  flags.tensor_parallel_size = devices;
  flags.options.scheduler.max_num_seqs = batch;
  flags.options.prefill.replicas = pools ? 1 : 0;  // also describes prefill replicas
  TRY_VOID(describe_replica(flags));
  return flags.options;
}

using SearchFlag = FlagRow<SearchFlags>;
constexpr FlagRest kSearched = {.needs = "--devices", .delimiter = ','};

constexpr SearchFlag kSearchFlags[] = {
    {"--devices",
     flag::to<&SearchFlags::devices>,
     "Devices to compare (known names or JSON files), to find the cheapest fleet; replaces --device",
     {},
     {.delimiter = ','}},
    {"--prices", flag::to<&SearchFlags::prices>,
     "Price per hour of each device in --devices; not needed for a single device", flag::range(1e-6, 1e9),
     kSearched},
    {"--tensor-parallel-sizes", flag::to<&SearchFlags::sizes>, "Numbers of devices per replica to try",
     flag::range(1, 1024), kSearched},
    {"--batch-sizes", flag::to<&SearchFlags::batches>, "Values of --max-num-seqs to try",
     flag::range(1, 1 << 16), kSearched},
    {"--pools",
     flag::to<&SearchFlags::pools>,
     "Also try separate prefill and decode pools",
     {},
     {.needs = "--devices"}},
};

}  // namespace

void add_search_flags(CLI::App& command, SearchFlags& c, SimulationFlags& replica) {
  constexpr const char* group = "Search";
  add_flags(command, c, group, kSearchFlags);
  CLI::Option* const devices = command.get_option("--devices");
  for (const char* one : {"--device", "--tensor-parallel-size", "--max-num-seqs", "--timing", "--window"})
    devices->excludes(command.get_option(one));
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
  ProgressBars bars;
  TRY(const fleet::DeviceSearch search,
      fleet::search_devices(
          kinds, trace, slo, {.replicas_max = replicas_max, .pools = c.pools},
          [&](const std::string& kind, std::size_t done, std::size_t all) { bars.show(kind, done, all); }));
  fmt::print("{}", device_search_text(search, slo));
  return boost::json::serialize(device_search_json(search, slo)) + "\n";
}

}  // namespace octavo
