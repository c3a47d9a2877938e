#include "app/serve_models.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "app/arguments.h"
#include "app/environment.h"
#include "app/models_file.h"
#include "app/serving.h"
#include "app/stop_signals.h"
#include "app/tracing_flag.h"
#include "base/host_memory.h"
#include "base/log.h"
#include "base/size_text.h"
#include "local/kv_environment.h"
#include "local/vllm_variables.h"
#include "many/model_handler.h"
#include "weights/weight_files.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using many::ModelSource;

constexpr std::string_view kField = "models";
// Interval of keep-alives in streams: a stream may wait until its model is loaded, and proxies close silent
// connections.
constexpr std::int64_t kKeepAliveUs = 10'000'000;

// Flags that are not supported with several models.
Result<> check_server_flags(const ServeCommand& c) {
  const std::pair<bool, std::string_view> refused[] = {
      {c.stand_ins > 1, "--stand-ins"},
      {c.headless, "--headless"},
      {!c.batch_dir.empty(), "--batch-dir"},
      {!c.engine_process, "--no-engine-process"},
      {!c.registration.etcd.empty(), "--register-etcd"},
      {!c.registration.routers.empty(), "--register-router"},
      {c.runtime.serve.features.dev_mode, "--server-dev-mode"}};
  for (const auto& [given, flag] : refused)
    if (given) return field_failure(flag, ErrorCode::unsupported, "is not supported with several models");
  return {};
}

Result<> check_model_flags(const ServeCommand& c) {
  const ParallelOptions& parallel = c.runtime.engine.parallel;
  if (parallel.data_parallel_size > 1 || c.runtime.engines.elastic || c.runtime.engines.elsewhere > 0)
    return field_failure("data_parallel_size", ErrorCode::unsupported, "must be 1 with several models");
  if (parallel.nodes.count > 1)
    return field_failure("nnodes", ErrorCode::unsupported, "must be 1 with several models");
  if (!c.runtime.engine.cache.memory_file.empty())
    return field_failure("kv_memory_file", ErrorCode::unsupported, "is not supported with several models");
  return {};
}

// Returns the options of one model: the flags of this process, then those of the model.
Result<std::unique_ptr<ServeCommand>> options_of(const std::vector<std::string>& flags) {
  std::vector<std::string> arguments = command_line();
  // removes "octavo serve"
  arguments.erase(arguments.begin(), std::min(arguments.begin() + 2, arguments.end()));
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  auto c = std::make_unique<ServeCommand>();
  CLI::App command("", "serve");
  add_serve_flags(command, *c);
  take_last(command);
  TRY(arguments, read_arguments(command, std::move(arguments)));
  std::ranges::reverse(arguments);
  try {
    command.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return invalid(kField, "{}", error.what());
  }
  TRY_VOID(take_data_parallel(c->data_parallel, false, c->runtime));
  TRY_VOID(take_kv_environment(*c, environment));
  TRY_VOID(check_server_flags(*c));
  TRY_VOID(check_model_flags(*c));
  return c;
}

// Estimates the memory of the weights from the sizes of their files.
std::int64_t estimated_weight_bytes(const ModelOptions& model) {
  std::int64_t bytes = 0;
  std::error_code failed;
  const auto add = [&](const fs::path& file) {
    const auto size = fs::file_size(file, failed);
    if (!failed) bytes += static_cast<std::int64_t>(size);
  };
  if (fs::is_directory(model.dir, failed)) {
    if (const auto files = find_weight_files(model.dir))
      for (const std::string& name : files->names) add(fs::path(model.dir) / name);
  } else if (const std::string stem = fs::path(model.dir).stem(); stem.find("-00001-of-") != stem.npos) {
    const std::string prefix = stem.substr(0, stem.find("-00001-of-"));
    for (const auto& entry : fs::directory_iterator(fs::path(model.dir).parent_path(), failed))
      if (entry.path().filename().string().starts_with(prefix + "-")) add(entry.path());
  } else {
    add(model.dir);
  }
  if (const std::string mmproj = model.mmproj_file(); !mmproj.empty()) add(mmproj);
  // The files usually have bf16 numbers, so a quantised model is smaller: 9/16 or 5/16 of their size.
  return model.quantization == "int8"   ? bytes * 9 / 16
         : model.quantization == "int4" ? bytes * 5 / 16
                                        : bytes;
}

// The size of the KV cache must not depend on the free memory, which other models use. By default, it is a
// quarter of the weights.
std::int64_t default_cache_bytes(std::int64_t weight_bytes, std::int64_t memory_bytes) {
  constexpr std::int64_t kLeast = 64 << 20;
  return std::min(std::max(weight_bytes / 4, kLeast), memory_bytes / 8);
}

Result<ModelSource> source_of(const ListedModel& listed, const ServeCommand& server,
                              std::int64_t memory_bytes) {
  std::vector<std::string> flags = listed.flags;
  TRY(auto c, options_of(flags));
  TRY_VOID(complete_options(*c));
  RuntimeOptions& runtime = c->runtime;
  ModelSource source{.preload = listed.preload || listed.pinned};
  source.names = runtime.served_model_names;
  if (source.names.empty()) source.names = runtime.served_model_names = {runtime.engine.model.dir};
  source.served = source.names.size();
  for (const LoraModule& adapter : runtime.lora_modules) source.names.push_back(adapter.name);
  runtime.lora_folder.base_name = runtime.engine.model.dir;
  TRY_VOID(find_models(runtime.engine, runtime.hub));
  source.rules = {.weight_bytes = estimated_weight_bytes(runtime.engine.model),
                  .pinned = listed.pinned,
                  .min_idle_us = std::int64_t{listed.min_idle_s} * 1'000'000,
                  .idle_timeout_us = std::int64_t{listed.idle_timeout_s} * 1'000'000};
  KvCacheOptions& cache = runtime.engine.cache;
  if (cache.memory_bytes == 0 && !cache.num_blocks) {
    cache.memory_bytes = default_cache_bytes(source.rules.weight_bytes, memory_bytes);
    flags.push_back("--kv-cache-memory-bytes=" + std::to_string(cache.memory_bytes));
  }
  source.rules.cache_bytes = cache.memory_bytes;
  if (runtime.serve.keep_alive_us == 0) runtime.serve.keep_alive_us = kKeepAliveUs;
  runtime.serve.access = server.runtime.serve.access;
  runtime.serve.observe.tracer = server.runtime.serve.observe.tracer;
  runtime.program.command = engine_command(runtime.engine, flags);
  source.options = std::move(runtime);
  return source;
}

Result<std::vector<ListedModel>> listed_models(const ServeCommand& c) {
  const std::string& first = c.runtime.engine.model.dir;
  if (c.models.source.empty()) {
    std::vector<ListedModel> models{listed_model(first)};
    for (const std::string& name : c.models.others) models.push_back(listed_model(name));
    return models;
  }
  if (!first.empty()) return invalid(kField, "names all models: remove {} from the command line", first);
  return read_models(c.models.source);
}

Result<std::vector<ModelSource>> sources_of(const ServeCommand& c, std::int64_t memory_bytes) {
  TRY(const std::vector<ListedModel> listed, listed_models(c));
  std::vector<ModelSource> sources;
  std::set<std::string> names;
  for (const ListedModel& model : listed) {
    auto source = source_of(model, c, memory_bytes);
    if (!source)
      return invalid(kField, "model {}: {}{}{}", sources.size() + 1, source.error().field,
                     source.error().field.empty() ? "" : ": ", source.error().message);
    for (const std::string& name : source->names)
      if (!names.insert(name).second)
        return invalid(kField, "two models are named {}: set different served-model-name", name);
    sources.push_back(*std::move(source));
  }
  return sources;
}

}  // namespace

Result<> serve_models(ServeCommand& c) {
  TRY_VOID(check_server_flags(c));
  TRY_VOID(complete_options(c));
  log_vllm_variables(environ);
  TRY(c.runtime.serve.observe.tracer, start_tracer(c.otlp_traces_endpoint, "octavo"));
  std::int64_t memory = c.models.memory_bytes;
  if (memory == 0) {
    const HostMemory host = host_memory();
    memory = static_cast<std::int64_t>(std::min(host.available, host.all()) / 10 * 9);
  }
  StopSignals signals;
  TRY(auto server, ApiServer::start(c.runtime.serve.access.api_keys, c.http));
  TRY(std::vector<ModelSource> sources, sources_of(c, memory));
  const std::size_t count = sources.size();
  std::vector<RuntimeOptions*> models;
  for (ModelSource& source : sources) models.push_back(&source.options);
  take_adapter_folder(models);
  // One budget for the unfinished requests of all models.
  const AdmissionOptions& admission = c.runtime.serve.admission;
  const auto bytes = std::make_shared<SharedBytes>(admission.budget().bytes, admission.client_max().bytes);
  for (RuntimeOptions* const model : models) model->serve.admission.shared_bytes = bytes;
  TRY(auto table, many::ModelTable::open({.memory_bytes = memory, .slice_us = c.models.slice_s * 1'000'000LL},
                                         std::move(sources)));
  const auto handler = std::make_shared<many::ModelHandler>(table, c.runtime.serve);
  server->open(handler);
  log_info("ready on {}: {} models in {} of memory", server->address(), count, size_text(memory));
  signals.wait([&] {
    for (const auto& service : handler->services()) service->engine.log_state();
  });
  log_info("stopping: running requests may take up to {} s to end", c.shutdown_timeout_s);
  server->stop(c.shutdown_timeout_s * 1000);
  return {};
}

}  // namespace octavo
