#include "app/data_parallel.h"

#include "base/error.h"

namespace octavo {

void add_data_parallel_flags(CLI::App& app, DataParallelOptions& options) {
  constexpr const char* kGroup = "Device";
  const CLI::Range ranks(0, 4095);
  app.add_option("--data-parallel-rank", options.rank,
                 "External load balancing: this server has one engine, this one of --data-parallel-size; the "
                 "others have separate servers")
      ->check(ranks)
      ->group(kGroup);
  app.add_flag("--data-parallel-external-lb", options.external,
               "The same, with the number in --data-parallel-rank")
      ->group(kGroup);
  app.add_flag(
         "--data-parallel-hybrid-lb", options.hybrid,
         "This server has --data-parallel-size-local of the engines, other hosts have servers for the others")
      ->group(kGroup);
  app.add_option("--data-parallel-size-local", options.size_local,
                 "Engines on this host; all, where nothing is said")
      ->check(CLI::Range(1, 64))
      ->group(kGroup);
  app.add_flag("--enable-elastic-ep", options.elastic,
               "Allow changing the number of engines at run time: POST /scale_elastic_ep "
               "{\"new_data_parallel_size\": N}")
      ->group(kGroup);
  app.add_option("--elastic-ep-max-dp-size", options.engines_max, "Maximum number of engines")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--data-parallel-address", options.address,
                 "Address to which engines of --headless hosts connect, on the host of the server")
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--data-parallel-rpc-port", options.port, "Port of that address")
      ->check(CLI::Range(1, 65'535))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--data-parallel-start-rank", options.start_rank, "The number of the first of them")
      ->check(ranks)
      ->group(kGroup);
}

Result<> take_data_parallel(const DataParallelOptions& options, bool headless, RuntimeOptions& runtime) {
  EngineOptions& engine = runtime.engine;
  const int all = engine.data_parallel_size;
  if (options.elastic && (options.rank || options.external || options.hybrid || options.size_local))
    return invalid("enable_elastic_ep", "is for a server that has all engines of --data-parallel-size");
  if (options.rank || options.external) {
    if (options.hybrid)
      return invalid("data_parallel_hybrid_lb", "cannot be combined with a --data-parallel-rank");
    if (!options.rank) return invalid("data_parallel_rank", "must be given with --data-parallel-external-lb");
    if (*options.rank >= all)
      return invalid("data_parallel_rank", "must be below --data-parallel-size {}, got {}", all,
                     *options.rank);
    engine.first_index = *options.rank;
    engine.data_parallel_size = 1;
    return {};
  }
  const int local = options.size_local.value_or(all), first = options.start_rank.value_or(0);
  const bool serves_all = !options.hybrid && !headless;
  if (serves_all && first != 0)
    return invalid("data_parallel_start_rank",
                   "must be 0 for the server of all engines, got {}; other hosts are --headless", first);
  if (headless && options.start_rank && first == 0)
    return invalid("data_parallel_start_rank",
                   "must be at least 1 on --headless hosts: the first engine is the server's");
  if (first + local > all)
    return invalid("data_parallel_start_rank", "engines {} to {} are more than --data-parallel-size {}",
                   first, first + local - 1, all);
  engine.first_index = first;
  engine.data_parallel_size = local;
  runtime.engines_elsewhere = serves_all ? all - local : 0;
  runtime.meeting_address = options.address;
  runtime.meeting_port = options.port;
  return {};
}

}  // namespace octavo
