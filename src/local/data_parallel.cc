#include "local/data_parallel.h"

#include "base/error.h"
#include "local/flag_table.h"

namespace octavo {

namespace {

constexpr int kLastPort = 65'535;

using ParallelFlag = FlagRow<DataParallelOptions>;

constexpr ParallelFlag kParallelFlags[] = {
    {"--data-parallel-rank", flag::to<&DataParallelOptions::rank>,
     "With external load balancing: index of this server's only engine, among --data-parallel-size engines",
     flag::range(0, 4095)},
    {"--data-parallel-external-lb", flag::to<&DataParallelOptions::external>,
     "Use an external load balancer over servers with one engine each; needs --data-parallel-rank"},
    {"--data-parallel-hybrid-lb", flag::to<&DataParallelOptions::hybrid>,
     "Use an external load balancer over servers with several engines: this server runs "
     "--data-parallel-size-local of them"},
    {"--data-parallel-size-local", flag::to<&DataParallelOptions::size_local>,
     "Number of engines on this host (default: all engines); 0: all engines of this server run on other "
     "hosts",
     flag::range(0, 64)},
    {"--enable-elastic-ep", flag::to<&DataParallelOptions::elastic>,
     "Allow POST /scale_elastic_ep {\"new_data_parallel_size\": N} to change the number of engines while the "
     "server runs"},
    {"--elastic-ep-max-dp-size", flag::to<&DataParallelOptions::engines_max>, "Maximum number of engines",
     flag::range(1, 64)},
    {"--data-parallel-address", flag::to<&DataParallelOptions::address>,
     "Address of the server's host, to which --headless hosts connect. With --enable-expert-parallel on "
     "several hosts, it must be the host of engine 0"},
    {"--data-parallel-rpc-port", flag::to<&DataParallelOptions::port>,
     "Port of --data-parallel-address. With --enable-expert-parallel on several hosts, the next port is also "
     "used",
     flag::range(1, kLastPort)},
    {"--data-parallel-start-rank", flag::to<&DataParallelOptions::start_rank>,
     "Index of this host's first engine", flag::range(0, 4095)},
};

// Sets up engines that share experts (expert parallelism). Engines of one server connect at a port that the
// server reserves. Engines of several servers or hosts connect at the port after --data-parallel-rpc-port.
Result<> take_shared_experts(const DataParallelOptions& options, bool headless, EngineOptions& engine) {
  const int all = engine.parallel.data_parallel_size;
  if (!engine.parallel.enable_expert_parallel) return {};
  if (options.elastic)
    return field_failure("enable_elastic_ep", ErrorCode::unsupported,
                         "is not supported with --enable-expert-parallel: the engines share the experts, so "
                         "their number is fixed. Remove one of the two flags");
  if (all == 1) return {};
  engine.parallel.nodes.expert_engines = all;
  const bool several_servers = options.rank || options.external || options.hybrid;
  if (!several_servers && !headless && options.size_local.value_or(all) == all) return {};
  const bool has_engine_0 = options.start_rank.value_or(0) == 0;
  if (options.size_local == 0 || (!several_servers && headless == has_engine_0))
    return field_failure(
        "data_parallel_start_rank", ErrorCode::unsupported,
        "engines that share experts connect to the host of engine 0, which must be the server's host "
        "(--data-parallel-address): give the server --data-parallel-size-local of 1 or more, and --headless "
        "hosts a --data-parallel-start-rank of 1 or more");
  if (options.port == kLastPort)
    return invalid(
        "data_parallel_rpc_port",
        "must be at most {} with --enable-expert-parallel, because the next port is also used; got {}",
        kLastPort - 1, options.port);
  engine.parallel.nodes.expert_address = options.address;
  engine.parallel.nodes.expert_port = options.port + 1;
  return {};
}

}  // namespace

void add_data_parallel_flags(CLI::App& app, DataParallelOptions& options) {
  add_flags(app, options, "Device", kParallelFlags);
}

Result<> take_data_parallel(const DataParallelOptions& options, bool headless, RuntimeOptions& runtime) {
  EngineOptions& engine = runtime.engine;
  const int all = engine.parallel.data_parallel_size;
  TRY_VOID(take_shared_experts(options, headless, engine));
  if (options.elastic && (headless || options.rank || options.start_rank || options.external ||
                          options.hybrid || options.size_local.value_or(all) != all))
    return invalid(
        "enable_elastic_ep",
        "needs a server that runs all its engines: remove --headless and all --data-parallel flags except "
        "--data-parallel-size. For more hosts, start a server on each host, and use octavo route");
  if (options.rank || options.external) {
    if (options.hybrid)
      return invalid("data_parallel_hybrid_lb", "cannot be combined with --data-parallel-rank");
    if (!options.rank) return invalid("data_parallel_rank", "must be given with --data-parallel-external-lb");
    if (*options.rank >= all)
      return invalid("data_parallel_rank", "must be below --data-parallel-size {}, got {}", all,
                     *options.rank);
    engine.first_index = *options.rank;
    engine.parallel.data_parallel_size = 1;
    return {};
  }
  const int local = options.size_local.value_or(all), first = options.start_rank.value_or(0);
  const bool serves_all = !options.hybrid && !headless;
  if (!serves_all && local == 0)
    return invalid("data_parallel_size_local",
                   "must be at least 1 on --headless hosts and with hybrid load balancing");
  if (first + local > all)
    return invalid("data_parallel_start_rank",
                   "engines {} to {} do not exist: their index must be below --data-parallel-size {}", first,
                   first + local - 1, all);
  engine.first_index = first;
  engine.parallel.data_parallel_size = local;
  runtime.engines.elsewhere = serves_all ? all - local : 0;
  runtime.engines.meeting_address = options.address;
  runtime.engines.meeting_port = options.port;
  return {};
}

}  // namespace octavo
