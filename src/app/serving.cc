#include "app/serving.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>

#include "app/engine_command.h"
#include "app/environment.h"
#include "app/tracing_flag.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/size_text.h"
#include "batches/service.h"
#include "local/version.h"
#include "local/vllm_variables.h"

namespace octavo {
namespace {

// Hashes the settings that change outputs (--fingerprint-mode), so that clients notice changes.
std::string fingerprint(const ServeCommand& c) {
  if (c.fingerprint.mode == "none") return "";
  if (c.fingerprint.mode == "custom") return c.fingerprint.value;
  const EngineOptions& e = c.runtime.engine;
  const std::string answers_depend_on =
      fmt::format("{}|{}|{}|{}|{}|{}", e.model.dir, e.device.type, e.model.dtype, e.model.quantization,
                  e.cache.dtype, e.model.max_model_len.value_or(0));
  const Hash128 hash = hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(std::span(answers_depend_on)), 0);
  return fmt::format("octavo-{}-{:08x}", kVersion, static_cast<std::uint32_t>(hash.low));
}

}  // namespace

std::vector<std::string> api_keys_of(const ServeCommand& c) {
  if (!c.runtime.serve.access.api_keys.empty()) return c.runtime.serve.access.api_keys;
  if (const std::string key = environment("VLLM_API_KEY"); !key.empty()) return {key};
  return {};
}

Result<> complete_options(ServeCommand& c) {
  if (c.fingerprint.mode == "custom" && c.fingerprint.value.empty())
    return invalid("fingerprint-value", "must be given with --fingerprint-mode custom");
  c.runtime.serve.access.api_keys = api_keys_of(c);
  c.runtime.serve.version = kVersion;
  c.runtime.serve.system_fingerprint = fingerprint(c);
  if (!c.auto_tool_choice) c.runtime.tool_call_parser = "none";
  if (!c.cors.origins.empty()) c.http.cors = c.cors;
  return {};
}

void take_adapter_folder(const std::vector<RuntimeOptions*>& models) {
  const std::string folder = environment("VLLM_LORA_RESOLVER_CACHE_DIR");
  const std::string plugins = environment("VLLM_PLUGINS");
  const auto is_resolver = [](auto name) {
    return std::ranges::equal(name, std::string_view("lora_filesystem_resolver"));
  };
  if (folder.empty() ||
      (!plugins.empty() && std::ranges::none_of(plugins | std::views::split(','), is_resolver)))
    return;
  bool used = false;
  for (RuntimeOptions* const model : models)
    if (model->engine.lora.enabled && model->serve.features.change_adapters) {
      model->lora_folder.path = folder;
      used = true;
    }
  if (!used)
    log_warning(
        "VLLM_LORA_RESOLVER_CACHE_DIR has no effect: loading adapters from this folder needs --enable-lora "
        "and --allow-runtime-lora-updating");
}

Result<Serving> start_serving(ServeCommand& c) {
  TRY_VOID(complete_options(c));
  log_vllm_variables(environ);
  const std::int64_t started = now_us();
  std::unique_ptr<batches::Store> store;
  if (!c.batch_dir.empty()) {
    const AccessOptions& access = c.runtime.serve.access;
    const bool clients = access.api_keys.size() > 1 || !access.client_header.empty();
    TRY(store, batches::Store::open(c.batch_dir, c.batch_dir_bytes, clients));
  }
  TRY(c.runtime.serve.observe.tracer, start_tracer(c.otlp_traces_endpoint, "octavo"));
  TRY(auto registration, plan_registration(c));
  if (c.engine_process) {
    c.runtime.program.command = engine_command(c.runtime.engine);
    c.runtime.engine.model.late = true;
  }
  Serving serving;
  const std::vector<std::string> api_keys = c.runtime.serve.access.api_keys;
  const auto listen = [&]() -> Result<> {
    TRY(serving.server, ApiServer::start(api_keys, c.http));
    return {};
  };
  // Listens now, unless the port is shared: then another server should get the requests until the model is
  // loaded.
  if (!c.http.reuse_port) {
    TRY_VOID(listen());
    c.runtime.events.model_found = [address = serving.server->address()] {
      log_info("listening on {}; 503 until the model is loaded", address);
    };
  }
  TRY(serving.runtime, start_runtime(std::move(c.runtime)));
  if (c.http.reuse_port) TRY_VOID(listen());
  // Starts the batches only here, because the server stops them only if open() was called.
  if (store)
    serving.runtime->service->batches =
        batches::start(std::move(store), batches::serve_host(serving.runtime->service));
  serving.server->open(serving.runtime->service);
  const EngineInfo engine = serving.runtime->engine->info();
  log_info("{}: {} of weights, {} KV blocks ({}), context of {} tokens", engine.architecture,
           size_text(engine.weight_bytes), engine.num_blocks, size_text(engine.cache.bytes),
           engine.max_model_len);
  log_info("ready on {} after {:.2f} s", serving.server->address(),
           static_cast<double>(now_us() - started) * 1e-6);
  if (c.log_stats.enabled)
    serving.stats_log = std::make_unique<StatsLog>(*serving.runtime->engine, c.log_stats.interval_s);
  if (registration) serving.registration = start_registration(*std::move(registration), serving);
  return serving;
}

}  // namespace octavo
