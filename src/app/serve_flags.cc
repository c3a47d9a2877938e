#include "app/serve_flags.h"

#include "app/environment.h"

#include <set>
#include <utility>

#include "app/engine_command.h"
#include "app/help_formatter.h"
#include "app/listen_flags.h"
#include "base/log.h"
#include "base/log_format.h"
#include "local/engine_flags.h"
#include "local/flag_table.h"
#include "local/json_flags.h"
#include "local/profiler_flag.h"
#include "local/runtime_flags.h"

namespace octavo {
namespace {

// Flags in `octavo serve --help`; --help-all prints all.
const std::set<std::string> kCommonFlags = {
    "--help",
    "--help-all",
    "--served-model-name",
    "--quantization",
    "--dtype",
    "--max-model-len",
    "--hf-token",
    "--device",
    "--tensor-parallel-size",
    "--data-parallel-size",
    "--kv-cache-dtype",
    "--models",
    "--gpu-memory-utilization",
    "--max-num-seqs",
    "--max-num-batched-tokens",
    "--speculative-config",
    "--enable-auto-tool-choice",
    "--tool-call-parser",
    "--reasoning-parser",
    "--chat-template",
    "--enable-lora",
    "--lora-modules",
    "--host",
    "--port",
    "--api-key",
    "--ssl-certfile",
    "--ssl-keyfile",
    "--log-level",
    "--config",
};

Result<> take_log_format(const std::string& name, ServeCommand&) {
  set_log_format(name == "json" ? LogFormat::json : LogFormat::text);
  return {};
}

// Enables the batch API. Batches have a lower priority than other requests.
Result<> take_batch_dir(const std::string& folder, ServeCommand& c) {
  if (folder.empty()) return invalid("--batch-dir", "must be the path of a folder");
  c.batch_dir = folder;
  Policy& policy = c.runtime.engine.schedule.policy;
  if (policy == Policy::fcfs) policy = Policy::priority;
  return {};
}

Result<> take_prices(const std::string& path, ServeCommand& c) {
  TRY(c.runtime.serve.observe.accounts.prices, read_prices_file(path));
  return {};
}

using ServeFlag = FlagRow<ServeCommand>;
ServeOptions& serving_of(ServeCommand& c) { return c.runtime.serve; }
openai::RequestRules& request_rules_of(ServeCommand& c) { return c.runtime.serve.rules; }
ServeFeatures& features_of(ServeCommand& c) { return c.runtime.serve.features; }
AccessOptions& access_of(ServeCommand& c) { return c.runtime.serve.access; }
ObserveOptions& observe_of(ServeCommand& c) { return c.runtime.serve.observe; }
AccountOptions& accounts_of(ServeCommand& c) { return c.runtime.serve.observe.accounts; }
RecordOptions& record_of(ServeCommand& c) { return c.runtime.record; }
http::TlsOptions& tls_of(ServeCommand& c) { return c.http.tls; }

constexpr ServeFlag kToolFlags[] = {
    {"--enable-auto-tool-choice,!--no-enable-auto-tool-choice", flag::to<&ServeCommand::auto_tool_choice>,
     "Find tool calls in answers if tool_choice is auto (default: on)"},
};

constexpr ServeFlag kReplyFlags[] = {
    {"--enable-request-id-headers", flag::to<features_of, &ServeFeatures::request_id_headers>,
     "Return the header X-Request-Id with the id from the request, or a new id if the request has none"},
    {"--enable-prompt-tokens-details", flag::to<features_of, &ServeFeatures::prompt_tokens_details>,
     "Report the number of cached prompt tokens in usage"},
    {"--enable-per-request-metrics", flag::to<features_of, &ServeFeatures::request_metrics>,
     "Report the times of each answer in its field metrics and in the header Server-Timing"},
    {"--sse-keep-alive-interval", flag::seconds<1'000'000, serving_of, &ServeOptions::keep_alive_us>,
     "Seconds of silence after which a stream sends an event without content, so that proxies do not close "
     "the connection: a ping in /v1/messages, the response's state in /v1/responses, a comment elsewhere; 0: "
     "never",
     flag::range(0, 86'400)},
    {"--enable-force-include-usage", flag::to<request_rules_of, &openai::RequestRules::force_include_usage>,
     "Report usage at the end of every stream"},
    {"--stream-interval", flag::to<request_rules_of, &openai::RequestRules::stream_interval>,
     "Minimum number of tokens in a chunk of a stream; the first and the last chunk may have fewer",
     flag::range(1, 1'000'000)},
    {"--return-tokens-as-token-ids",
     flag::to<request_rules_of, &openai::RequestRules::return_tokens_as_token_ids>,
     "Write the tokens of log-probabilities as ids, such as \"token_id:7\""},
    {"--cohere-is-reasoning-model,!--no-cohere-is-reasoning-model",
     flag::to<features_of, &ServeFeatures::cohere_thinking>,
     "/cohere/v2/chat: return reasoning as thinking blocks (default: on); without it, as tool_plan if the "
     "answer calls tools"},
    {"--enable-tokenizer-info-endpoint", flag::to<features_of, &ServeFeatures::tokenizer_info>,
     "Serve /tokenizer_info"},
    {"--sagemaker-sessions",
     flag::to<features_of, &ServeFeatures::sagemaker_sessions>,
     "Let clients of /invocations create and close SageMaker's stateful sessions",
     {},
     {.environment = "SAGEMAKER_ENABLE_STATEFUL_SESSIONS"}},
    {"--sagemaker-session-lifetime",
     flag::to<features_of, &ServeFeatures::sagemaker_session_s>,
     "Seconds after which a session of --sagemaker-sessions expires",
     flag::range(1, 31'536'000),
     {.environment = "SAGEMAKER_SESSIONS_EXPIRATION"}},
    {"--enable-session-import",
     flag::to<&RuntimeCommand::runtime, &RuntimeOptions::engine, &EngineOptions::sessions,
              &SessionLimits::imports>,
     "Serve /v1/sessions/{id}/export and import. An imported file decides the content of cached prefixes, so "
     "enable it only if all clients are trusted"},
    {"--fingerprint-mode", flag::to<&ServeCommand::fingerprint, &Fingerprint::mode>,
     "Content of system_fingerprint: full or hash (version and configuration), custom (--fingerprint-value), "
     "or none",
     OneOf{"full|hash|custom|none"}},
    {"--fingerprint-value", flag::to<&ServeCommand::fingerprint, &Fingerprint::value>,
     "Value of system_fingerprint with --fingerprint-mode custom"},
};

constexpr ServeFlag kAdapterFlags[] = {
    {"--allow-runtime-lora-updating",
     flag::to<features_of, &ServeFeatures::change_adapters>,
     "Serve /v1/load_lora_adapter and /v1/unload_lora_adapter",
     {},
     {.environment = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"}},
};

constexpr ServeFlag kListenFlags[] = {
    {"--host", flag::to<&ServeCommand::http, &http::ServerOptions::host>, "Address to listen on"},
    {"--port", flag::to<&ServeCommand::http, &http::ServerOptions::port>,
     "Port to listen on; 0: any free port"},
    {"--uds", flag::to<&ServeCommand::http, &http::ServerOptions::uds>,
     "Path of a Unix socket to listen on, instead of host and port"},
    {"--reuse-port", flag::to<&ServeCommand::http, &http::ServerOptions::reuse_port>,
     "Share the port with other servers (SO_REUSEPORT) and start to listen when the model is loaded, so that "
     "a new server can replace an old one without a gap"},
    {"--ssl-certfile", flag::to<tls_of, &http::TlsOptions::certfile>,
     "PEM file of the certificate chain; with it, the server uses https instead of http"},
    {"--ssl-keyfile", flag::to<tls_of, &http::TlsOptions::keyfile>,
     "PEM file of the certificate's private key (default: the certificate's file)"},
    {"--ssl-ca-certs", flag::to<tls_of, &http::TlsOptions::ca_certs>,
     "PEM file of the authorities that sign client certificates"},
    {"--ssl-cert-reqs", flag::to<tls_of, &http::TlsOptions::cert_reqs>,
     "Whether clients must send a certificate: 0 (not requested), 1 (checked if sent), 2 (required)",
     flag::range(0, 2)},
    {"--ssl-ciphers", flag::to<tls_of, &http::TlsOptions::ciphers>,
     "List of ciphers for TLS 1.2, in OpenSSL's format (default: OpenSSL's list)"},
    {"--enable-ssl-refresh", flag::to<tls_of, &http::TlsOptions::refresh>,
     "Reload the certificate files when they change"},
};

constexpr ServeFlag kAccessFlags[] = {
    {"--api-key",
     flag::to<access_of, &AccessOptions::api_keys>,
     "API key that clients must send; the flag can be given several times. The environment variable "
     "VLLM_API_KEY also sets a key",
     {},
     {.environment = "OCTAVO_API_KEY"}},
    {"--client-header", flag::to<access_of, &AccessOptions::client_header>,
     "Request header whose value identifies the client (default: its API key, or its address without a key). "
     "The server trusts the header, so the gateway must overwrite it"},
    {"--isolate-prefix-cache", flag::to<access_of, &AccessOptions::isolate_prefix_cache>,
     "Do not share cached prefixes between clients; an API key, an address or the value of --client-header "
     "identifies a client"},
    {"--allowed-origins", flag::parsed<read_text_list, &ServeCommand::cors, &http::CorsOptions::origins>,
     R"(Origins of web pages that may call the server, as a JSON list: ["*"])"},
    {"--allowed-methods", flag::parsed<read_text_list, &ServeCommand::cors, &http::CorsOptions::methods>,
     "Methods that web pages may use, as a JSON list (default: all)"},
    {"--allowed-headers", flag::parsed<read_text_list, &ServeCommand::cors, &http::CorsOptions::headers>,
     "Header fields that web pages may send, as a JSON list (default: all)"},
    {"--allow-credentials", flag::to<&ServeCommand::cors, &http::CorsOptions::allow_credentials>,
     "Allow web pages to send cookies"},
    {"!--no-page", flag::to<features_of, &ServeFeatures::page>, "Do not serve the web page at /"},
    {"--root-path", flag::to<serving_of, &ServeOptions::root_path>,
     "Path prefix that a proxy adds; the server accepts paths with and without this prefix"},
};

constexpr ServeFlag kProcessFlags[] = {
    {"--engine-process,!--no-engine-process", flag::to<&ServeCommand::engine_process>,
     "Run the engine in a child process, and restart this process after a crash (default: on)"},
    {"--numa-bind,!--no-numa-bind", flag::to<&ServeCommand::numa, &NumaOptions::bind>,
     "Bind each engine process to its own NUMA nodes, if the host has several nodes (default: on)"},
    {"--numa-bind-nodes", flag::to<&ServeCommand::numa, &NumaOptions::nodes>,
     "NUMA node of each process: first all ranks of engine 0, then those of engine 1, .."},
    {"--numa-bind-cpus", flag::to<&ServeCommand::numa, &NumaOptions::processors>,
     "Processors of each process, one list such as 0-15,32 per process; replaces --numa-bind-nodes. "
     "VLLM_CPU_OMP_THREADS_BIND=\"0-15|16-31\" has the same effect"},
    {"--stand-ins", flag::to<&ServeCommand::stand_ins>,
     "Number of simulated servers in this process. They listen on consecutive ports, the first on --port; "
     "needs --executor simulated",
     flag::range(1, 4096)},
    {"--headless", flag::to<&ServeCommand::headless>,
     "Run engines for a server on another host, without a server here; for hosts with --node-rank above 0 or "
     "with --data-parallel-start-rank"},
};

constexpr ServeFlag kLogFlags[] = {
    {"--h11-max-incomplete-event-size", flag::to<&ServeCommand::http, &http::ServerOptions::header_bytes_max>,
     "Maximum number of bytes in the header of a request", flag::range(1 << 10, 16 << 20)},
    {"--h11-max-header-count", flag::to<&ServeCommand::http, &http::ServerOptions::headers_max>,
     "Maximum number of fields in the header of a request", flag::range(8, 10'000)},
    {"!--disable-log-stats", flag::to<&ServeCommand::log_stats, &LogStats::enabled>,
     "Do not log throughput, queue length and cache usage"},
    {"--log-stats-interval",
     flag::to<&ServeCommand::log_stats, &LogStats::interval_s>,
     "Seconds between two log lines with throughput, queue length and cache usage",
     flag::range(0.1, 86'400.0),
     {.environment = "VLLM_LOG_STATS_INTERVAL"}},
    {"--enable-log-requests", flag::to<observe_of, &ObserveOptions::log_requests>,
     "Log one line per accepted request, and per request that was read and failed; --log-level debug adds "
     "the prompt"},
    {"--max-log-len", flag::to<observe_of, &ObserveOptions::max_log_len>,
     "Maximum number of bytes of a prompt in the log (default: no limit)", flag::range(0, 1 << 30)},
    {"--log-format", flag::parsed<take_log_format>,
     "Format of log lines: text, or one JSON object {\"time\", \"level\", \"message\"} per line",
     OneOf{"text|json"}},
    log_level_flag<ServeCommand>("VLLM_LOGGING_LEVEL"),
    {"--server-dev-mode",
     flag::to<features_of, &ServeFeatures::dev_mode>,
     "Serve the development routes: /server_info, /reset_prefix_cache, /sleep, /wake_up, /is_sleeping, "
     "/pause, /resume, /is_paused, /collective_rpc, /update_weights_from_disk",
     {},
     {.environment = "VLLM_SERVER_DEV_MODE"}},
};

constexpr ServeFlag kAccountFlags[] = {
    {"--access-log", flag::to<accounts_of, &AccountOptions::access_log>,
     "File to which a line of JSON is appended for each finished request: tenant, times, tokens and cost"},
    {"--prices", flag::parsed<take_prices>,
     "File of prices per unit of cost, YAML or JSON: costs are also reported as money"},
};

constexpr ServeFlag kRecordFlags[] = {
    {"--record", flag::to<record_of, &RecordOptions::dir>,
     "Folder in which the server records finished requests, so that `octavo replay` can compute them again. "
     "The server creates the folder. Records contain prompts and answers as token ids"},
    {"--record-bytes", flag::to<record_of, &RecordOptions::bytes_max>,
     "Maximum number of bytes of all files in --record; above it, the server deletes the oldest file",
     flag::range(RecordOptions::kBytesMin, std::int64_t{1} << 50)},
    {"--record-media", flag::to<record_of, &RecordOptions::media>,
     "Record images, videos, sounds and embeddings of prompts, so that `octavo replay` can compute these "
     "requests: a record has the decoded pixels or numbers"},
    {"--record-hashes-only", flag::to<record_of, &RecordOptions::hashes_only>,
     "Record hashes instead of token ids, parameters and grammars; `octavo replay` cannot compute these "
     "records again"},
};

constexpr ServeFlag kModelsFlags[] = {
    {"more-models", flag::to<&ServeCommand::models, &ModelsOptions::others>,
     "More models, loaded on request"},
    {"--models", flag::to<&ServeCommand::models, &ModelsOptions::source>,
     "Many models: a YAML file with a list `models`, or a folder of models. Each is loaded when a request "
     "names it"},
    {"--models-memory",
     flag::to<&ServeCommand::models, &ModelsOptions::memory_bytes>,
     "Memory in bytes for weights and KV caches of all models (default: 90 % of the available memory)",
     NotNegative{.suffix = true},
     {.no_default = true}},
    {"--models-slice", flag::to<&ServeCommand::models, &ModelsOptions::slice_s>,
     "Seconds that a busy model stays loaded while requests wait for another model; a model also stays at "
     "least as long as its load took",
     flag::range(1, 86'400)},
};

constexpr ServeFlag kOtherFlags[] = {
    {"--batch-dir", flag::parsed<take_batch_dir>,
     "Folder for the data of /v1/files, /v1/batches and /v1/messages/batches; batches continue after a "
     "restart. The server creates the folder; only one server can use it. The flag sets --scheduling-policy "
     "priority instead of fcfs, so that other requests run before batches"},
    {"--batch-dir-bytes", flag::to<&ServeCommand::batch_dir_bytes>,
     "Maximum number of bytes of all files and answers in --batch-dir",
     flag::range(std::int64_t{1} << 20, std::int64_t{1} << 50)},
    {"--enable-sleep-mode", flag::to<features_of, &ServeFeatures::sleep_mode>,
     "Let POST /sleep free the KV cache (level 1) or also the weights (level 2); needs --server-dev-mode"},
    {"--shutdown-timeout", flag::to<&ServeCommand::shutdown_timeout_s>,
     "Seconds that running requests have to finish after SIGTERM", flag::range(0, 3600)},
    {"--config", flag::nowhere, "YAML file with flags; a flag on the command line overrides the file"},
    {"--list-flags", flag::to<&ServeCommand::lists, &Lists::flags>,
     "Print how each flag of `vllm serve` is handled (docs/reference/flags.md), and exit"},
    {"--list-routes", flag::to<&ServeCommand::lists, &Lists::routes>,
     "Print the OpenAPI document of all routes, and exit"},
    {"--list-environment", flag::to<&ServeCommand::lists, &Lists::environment>,
     "Print how each environment variable is handled (docs/reference/environment.md), and exit"},
    {"--list-metrics", flag::to<&ServeCommand::lists, &Lists::metrics>,
     "Print all metrics (docs/reference/metrics.md), and exit"},
};

}  // namespace

void add_serve_flags(CLI::App& app, ServeCommand& command) {
  command.runtime.tool_call_parser = command.runtime.reasoning_parser = "auto";
  app.formatter(std::make_shared<ShortHelpFormatter>(kCommonFlags));
  add_engine_flags(app, command.runtime.engine);
  add_hub_flags(app, command.runtime.hub, environment);
  add_flags(app, command, "Tools and reasoning", kToolFlags);
  add_runtime_flags(app, command);
  add_flags(app, command, "Requests and replies", kReplyFlags);
  add_flags(app, command, "LoRA", kAdapterFlags);
  constexpr const char* kServer = "Server";
  command.http.host = "0.0.0.0";
  command.http.port = 8000;
  add_flags(app, command, "Many models", kModelsFlags);
  add_flags(app, command, kServer, kListenFlags);
  add_flags(app, command, kServer, kAccessFlags);
  add_flags(app, command, kServer, kProcessFlags);
  add_child_flags(app, command);
  add_flags(app, command, kServer, kLogFlags);
  add_profiler_flag(app, command.runtime.serve, kServer);
  add_flags(app, command, kServer, kAccountFlags);
  add_flags(app, command, kServer, kRecordFlags);
  add_flags(app, command, kServer, kOtherFlags);
  add_registration_flags(app, command.registration);
}

}  // namespace octavo
