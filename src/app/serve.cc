// octavo serve
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "app/engine_command.h"
#include "app/environment.h"
#include "app/metrics_page.h"
#include "app/serve_flags.h"
#include "app/serving.h"
#include "app/stop_signals.h"
#include "base/log.h"

namespace octavo {
namespace {

// vLLM's variables for where blocks are handed over, unless --kv-transfer-config says it.
Result<> take_side_channel(KvTransferOptions& options) {
  if (options.host.empty()) options.host = environment("VLLM_NIXL_SIDE_CHANNEL_HOST");
  const std::string port = environment("VLLM_NIXL_SIDE_CHANNEL_PORT");
  if (port.empty() || options.port) return {};
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc{} || end != port.data() + port.size() || number < 0 || number > 65'535)
    return invalid("VLLM_NIXL_SIDE_CHANNEL_PORT", "must be an integer in [0, 65535], got {}", port);
  options.port = number;
  return {};
}

// --kv-offloading-size: a tier in the user's cache folder.
Result<> take_offloading(const ServeCommand& c, KvTransferOptions& options) {
  if (c.kv_offloading_gib == 0) return {};
  if (options.enabled)
    return invalid("--kv-offloading-size",
                   "is another way to say what --kv-transfer-config says: give one of them");
  const std::string home = environment("HOME");
  std::string folder = environment("XDG_CACHE_HOME");
  if (folder.empty() && home.empty())
    return invalid("--kv-offloading-size",
                   "neither XDG_CACHE_HOME nor HOME says where the user's cache folder is");
  if (folder.empty()) folder = home + "/.cache";
  options.enabled = true;
  options.disk = {.folder = folder + "/octavo/kv",
                  .bytes = static_cast<std::int64_t>(c.kv_offloading_gib * (std::int64_t{1} << 30))};
  return {};
}

Result<> serve(ServeCommand& c) {
  TRY_VOID(take_side_channel(c.runtime.engine.kv_transfer));
  TRY_VOID(take_offloading(c, c.runtime.engine.kv_transfer));
  if (c.run_engine) return run_engine(std::move(c.runtime), c.run_rank);
  StopSignals signals;
  TRY(const Serving serving, start_serving(c));
  signals.wait();
  log_info("stopping: answers in flight get up to {} s", c.shutdown_timeout_s);
  serving.server->stop(c.shutdown_timeout_s * 1000);
  return {};
}

}  // namespace

void add_serve(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand("serve", "Serve a model over an OpenAI-compatible HTTP API");
  auto options = std::make_shared<ServeCommand>();
  add_serve_flags(*command, *options);
  command->callback([options, command, &outcome] {
    if (options->list_flags) return fmt::print("{}", flags_page(*command));
    if (options->list_metrics) return fmt::print("{}", metrics_page());
    if (const auto served = serve(*options); !served) outcome.report(served.error());
  });
}

}  // namespace octavo
