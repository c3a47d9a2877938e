// octavo serve: serves a model over HTTP.
#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "app/commands.h"
#include "app/engine_command.h"
#include "app/environment.h"
#include "app/job_nodes.h"
#include "app/metrics_page.h"
#include "app/serve_flags.h"
#include "app/serve_models.h"
#include "app/serving.h"
#include "app/stop_signals.h"
#include "base/log.h"
#include "local/kv_environment.h"
#include "local/share_host.h"
#include "serve/routes/routes.h"

namespace octavo {
namespace {

// Reads the rank of this process from the variables of mpirun (Open MPI, MPICH or Slurm).
Result<> take_mpi(EngineOptions& options) {
  if (options.parallel.rank_layout().size() == 1 || options.parallel.nodes.count > 1) return {};
  const auto number = [](std::initializer_list<const char*> names) -> std::optional<int> {
    for (const char* name : names) {
      const std::string text = environment(name);
      int value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (!text.empty() && error == std::errc{} && end == text.data() + text.size()) return value;
    }
    return std::nullopt;
  };
  const auto size = number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
  const auto rank = number({"OMPI_COMM_WORLD_RANK", "PMI_RANK"});
  if (!size || !rank || *size == 1) return {};
  if (options.parallel.data_parallel_size > 1)
    return field_failure("data_parallel_size", ErrorCode::unsupported, "must be 1 under mpirun, got {}",
                         options.parallel.data_parallel_size);
  options.parallel.mpi = MpiProcess{
      .rank = *rank, .of_host = number({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}).value_or(*size)};
  return {};
}

// Reads the hosts of a job, unless a flag sets the index of this host.
Result<> take_job_nodes(EngineOptions& options) {
  if (options.parallel.rank_layout().size() == 1 || options.parallel.nodes.count > 1 || options.parallel.mpi)
    return {};
  TRY(const NodeOptions nodes, nodes_of_job(environment));
  if (nodes.count == 1) return {};
  options.parallel.nodes.count = nodes.count;
  options.parallel.nodes.rank = nodes.rank;
  options.parallel.nodes.master_addr = nodes.master_addr;
  log_info("this is host {} of {} of the job; host 0 is {}", nodes.rank, nodes.count, nodes.master_addr);
  return {};
}

// --stand-ins: starts servers without weights, each with an engine in this process. Engine indices and the
// ports of KV events count up.
Result<std::vector<Serving>> start_stand_ins(const ServeCommand& c) {
  const EngineOptions& engine = c.runtime.engine;
  if (!engine.device.executor.starts_with("simulated"))
    return invalid("--stand-ins",
                   "needs --executor simulated: one process cannot run {} engines with executor {}",
                   c.stand_ins, engine.device.executor);
  if (engine.parallel.rank_layout().size() > 1 || engine.parallel.data_parallel_size > 1)
    return invalid("--stand-ins", "needs servers with one engine each: remove the parallel sizes");
  if (engine.kv_transfer.enabled || !c.http.uds.empty())
    return invalid("--stand-ins", "cannot be combined with --kv-transfer-config or --uds");
  if (c.http.port == 0 || c.http.port + c.stand_ins - 1 > 65'535)
    return invalid("--stand-ins", "the {} ports from {} on must all be at most 65535", c.stand_ins,
                   c.http.port);
  std::vector<Serving> servings;
  for (int i = 0; i < c.stand_ins; ++i) {
    ServeCommand one = c;
    one.engine_process = false;
    one.http.port = static_cast<std::uint16_t>(c.http.port + i);
    one.runtime.engine.index = i;
    one.runtime.serve.threads.intake = one.runtime.serve.threads.delivery = 1;
    TRY(servings.emplace_back(), start_serving(one));
  }
  return servings;
}

Result<std::vector<Serving>> start_servers(ServeCommand& c) {
  if (c.stand_ins > 1) return start_stand_ins(c);
  std::vector<Serving> servings;
  TRY(servings.emplace_back(), start_serving(c));
  return servings;
}

Result<> serve(ServeCommand& c) {
  EngineOptions& engine = c.runtime.engine;
  TRY_VOID(take_data_parallel(c.data_parallel, c.headless, c.runtime));
  // true: this host runs engines of another host's server. A headless host without the two flags runs ranks
  // of an engine.
  const bool has_engines_of_another =
      c.headless && (c.data_parallel.start_rank || c.data_parallel.size_local);
  if (c.runtime.engines.elsewhere == 0 && !has_engines_of_another) {
    TRY_VOID(take_mpi(engine));
    TRY_VOID(take_job_nodes(engine));
  } else if (engine.parallel.nodes.count > 1) {
    return field_failure("nnodes", ErrorCode::unsupported,
                         "must be 1 if the engines are on several hosts, got {}",
                         engine.parallel.nodes.count);
  }
  if (c.data_parallel.elastic && (engine.parallel.mpi || engine.parallel.nodes.count > 1))
    return invalid("enable_elastic_ep", "is not supported with engines on several hosts");
  c.runtime.engines.elastic = c.data_parallel.elastic;
  c.runtime.engines.most = c.data_parallel.engines_max;
  TRY_VOID(take_kv_environment(c, environment));
  if (c.child.runs_engine) return run_engine(std::move(c.runtime), c.child.rank, has_engines_of_another);
  if (c.models.given()) return serve_models(c);
  take_adapter_folder({&c.runtime});
  TRY_VOID(take_processors(engine, c.numa, environment));
  if (engine.parallel.mpi && engine.parallel.mpi->rank > 0) return run_mpi_rank(std::move(c.runtime));
  if (engine.parallel.nodes.count > 1 && engine.parallel.nodes.rank > 0) return run_host_of_ranks(engine);
  if (has_engines_of_another) return run_host_of_engines(std::move(c.runtime));
  if (c.headless)
    return invalid("--headless",
                   "needs --node-rank above 0, --data-parallel-start-rank or --data-parallel-size-local");
  StopSignals signals;
  TRY(std::vector<Serving> servings, start_servers(c));
  signals.wait([&] {
    for (const Serving& serving : servings) serving.runtime->engine->log_state();
  });
  // makes routers stop sending requests
  for (Serving& serving : servings) serving.registration.reset();
  log_info("stopping: running requests may take up to {} s to end", c.shutdown_timeout_s);
  for (const Serving& serving : servings) serving.server->stop(c.shutdown_timeout_s * 1000);
  return {};
}

}  // namespace

void add_serve(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand("serve", "Serve a model over an OpenAI-compatible HTTP API");
  auto options = std::make_shared<ServeCommand>();
  add_serve_flags(*command, *options);
  command->callback([options, command, &outcome] {
    if (options->lists.flags) return fmt::print("{}", flags_page(*command));
    if (options->lists.routes) return fmt::print("{}\n", boost::json::serialize(api_of_all_routes()));
    if (options->lists.environment) return fmt::print("{}", environment_page());
    if (options->lists.metrics) return fmt::print("{}", metrics_page());
    if (const auto served = serve(*options); !served) outcome.report(served.error());
  });
}

}  // namespace octavo
