#include "app/plan_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <map>
#include <utility>

#include "base/quoted_text.h"
#include "fleet/plan/device_search.h"
#include "local/flag_table.h"
#include "local/progress.h"
#include "timing/read_timing.h"

namespace octavo {
namespace {

// Files with measured timings, by device and number of devices of a replica.
using Timings = std::map<std::pair<std::string, int>, std::string>;

// Parses DEVICE:SIZE=FILE. The device may be the path of a file.
Result<Timings> read_timings(const SearchFlags& c) {
  Timings found;
  for (const std::string& text : c.timings) {
    const std::size_t equals = text.find('=');
    const std::size_t colon = text.rfind(':', equals);
    int size = 0;
    const char* const end = text.data() + std::min(equals, text.size());
    const bool parsed = equals < text.size() - 1 && colon != std::string::npos &&
                        std::from_chars(text.data() + colon + 1, end, size).ptr == end;
    if (!parsed)
      return invalid("timings", "must be DEVICE:SIZE=FILE, such as h100:2=timing.json, got {}",
                     quoted_text(text));
    const std::string device = text.substr(0, colon);
    if (std::ranges::find(c.devices, device) == c.devices.end())
      return invalid("timings", "{} is not one of --devices", quoted_text(device));
    if (std::ranges::find(c.sizes, size) == c.sizes.end())
      return invalid("timings", "{} has {} devices per replica, which is not one of --tensor-parallel-sizes",
                     quoted_text(text), size);
    if (!found.emplace(std::pair(device, size), text.substr(equals + 1)).second)
      return invalid("timings", "{}:{} is given twice", device, size);
  }
  return found;
}

// Returns an error if the model does not fit. timing: file with the measured timing; "": the roofline.
Result<fleet::SimulationOptions> describe_kind(SimulationFlags flags, const std::string& device, int devices,
                                               int batch, bool pools, const std::string& timing) {
  flags.device = device;
  flags.tensor_parallel_size = devices;
  flags.timing = timing;
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
    {"--timings",
     flag::to<&SearchFlags::timings>,
     "Measured timings (files of `octavo simulate calibrate`) as DEVICE:SIZE=FILE, for replicas of SIZE "
     "devices; replicas without a file use the roofline",
     {},
     kSearched},
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
  TRY(const Timings timings, read_timings(c));
  std::vector<fleet::ReplicaKind> kinds;
  for (std::size_t i = 0; i < c.devices.size(); ++i)
    for (const int devices : c.sizes)
      for (const int batch : c.batches) {
        const auto measured = timings.find({c.devices[i], devices});
        auto options = describe_kind(replica, c.devices[i], devices, batch, c.pools,
                                     measured == timings.end() ? "" : measured->second);
        if (!options && options.error().field != "model") return std::unexpected(options.error());
        kinds.push_back({.device = c.devices[i],
                         .devices = devices,
                         .max_num_seqs = batch,
                         .measured = measured != timings.end(),
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
