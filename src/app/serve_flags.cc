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

// Flags in `octavo serve --help`.
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

// Enables batches, with a lower priority than other requests.
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
RuntimeOptions& runtime_of(ServeCommand& c) { return c.runtime; }
ServeOptions& serving_of(ServeCommand& c) { return c.runtime.serve; }
openai::RequestRules& rules_of(ServeCommand& c) { return c.runtime.serve.rules; }
ServeFeatures& features_of(ServeCommand& c) { return c.runtime.serve.features; }
AccessOptions& access_of(ServeCommand& c) { return c.runtime.serve.access; }
ObserveOptions& observe_of(ServeCommand& c) { return c.runtime.serve.observe; }
AccountOptions& accounts_of(ServeCommand& c) { return c.runtime.serve.observe.accounts; }
RecordOptions& record_of(ServeCommand& c) { return c.runtime.record; }
http::TlsOptions& tls_of(ServeCommand& c) { return c.http.tls; }

constexpr ServeFlag kToolFlags[] = {
    {"--enable-auto-tool-choice,!--no-enable-auto-tool-choice", flag::to<&ServeCommand::auto_tool_choice>,
     "Find tool calls in answers, for tool_choice auto (default: on)"},
};

constexpr ServeFlag kReplyFlags[] = {
    {"--enable-request-id-headers", flag::to<features_of, &ServeFeatures::request_id_headers>,
     "Answer with X-Request-Id: the request's own, else a new one"},
    {"--enable-prompt-tokens-details", flag::to<features_of, &ServeFeatures::prompt_tokens_details>,
     "Report cached tokens in usage"},
    {"--enable-per-request-metrics", flag::to<features_of, &ServeFeatures::request_metrics>,
     "Add an answer's times to its reply (metrics) and to the header Server-Timing"},
    {"--sse-keep-alive-interval", flag::seconds<1'000'000, serving_of, &ServeOptions::keep_alive_us>,
     "Seconds of silence after which a stream sends a comment, of /v1/messages a ping, of /v1/responses its "
     "state, so that proxies keep its connection; 0: never",
     flag::range(0, 86'400)},
    {"--enable-force-include-usage", flag::to<rules_of, &openai::RequestRules::force_include_usage>,
     "Send usage in every stream"},
    {"--stream-interval", flag::to<rules_of, &openai::RequestRules::stream_interval>,
     "Minimum number of tokens in a chunk of a stream, except the first and the last chunk",
     flag::range(1, 1'000'000)},
    {"--return-tokens-as-token-ids", flag::to<rules_of, &openai::RequestRules::return_tokens_as_token_ids>,
     "Name the tokens of log-probabilities as \"token_id:7\""},
    {"--enable-tokenizer-info-endpoint", flag::to<features_of, &ServeFeatures::tokenizer_info>,
     "Serve /tokenizer_info"},
    {"--fingerprint-mode", flag::to<&ServeCommand::fingerprint, &Fingerprint::mode>,
     "system_fingerprint: full or hash (version and configuration), custom "
     "(--fingerprint-value), none",
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
     "Share the port with other servers (SO_REUSEPORT), and listen only when the model is loaded: for "
     "restarts without a gap"},
    {"--ssl-certfile", flag::to<tls_of, &http::TlsOptions::certfile>,
     "PEM file of the certificate chain; serves https instead of http"},
    {"--ssl-keyfile", flag::to<tls_of, &http::TlsOptions::keyfile>,
     "PEM file of the certificate's private key (default: the certificate's file)"},
    {"--ssl-ca-certs", flag::to<tls_of, &http::TlsOptions::ca_certs>,
     "PEM file of the authorities for clients' certificates"},
    {"--ssl-cert-reqs", flag::to<tls_of, &http::TlsOptions::cert_reqs>,
     "Client certificates: 0 not requested, 1 checked if sent, 2 required", flag::range(0, 2)},
    {"--ssl-ciphers", flag::to<tls_of, &http::TlsOptions::ciphers>,
     "Ciphers of TLS 1.2, as OpenSSL lists them (default: OpenSSL's)"},
    {"--enable-ssl-refresh", flag::to<tls_of, &http::TlsOptions::refresh>,
     "Reload the certificate files when they change"},
};

constexpr ServeFlag kAccessFlags[] = {
    {"--api-key",
     flag::to<access_of, &AccessOptions::api_keys>,
     "Key that clients must send; can be given several times. VLLM_API_KEY in the environment "
     "also sets it",
     {},
     {.environment = "OCTAVO_API_KEY"}},
    {"--client-header", flag::to<access_of, &AccessOptions::client_header>,
     "Request header that identifies the tenant (default: API key, else address). Trusted as sent: set it "
     "at the gateway"},
    {"--isolate-prefix-cache", flag::to<access_of, &AccessOptions::isolate_prefix_cache>,
     "Tenants (by key, address or --client-header) share no cached prefixes"},
    {"--allowed-origins", flag::parsed<read_text_list, &ServeCommand::cors, &http::CorsOptions::origins>,
     R"(JSON list: web pages that may use the server, as ["*"])"},
    {"--allowed-methods", flag::parsed<read_text_list, &ServeCommand::cors, &http::CorsOptions::methods>,
     "JSON list: methods that web pages may use (default: all)"},
    {"--allowed-headers", flag::parsed<read_text_list, &ServeCommand::cors, &http::CorsOptions::headers>,
     "JSON list: header fields that web pages may send (default: all)"},
    {"--allow-credentials", flag::to<&ServeCommand::cors, &http::CorsOptions::allow_credentials>,
     "Allow web pages to send cookies"},
    {"!--no-page", flag::to<features_of, &ServeFeatures::page>, "No web page at /"},
    {"--root-path", flag::to<serving_of, &ServeOptions::root_path>,
     "Path prefix that a proxy adds; paths work with it and without"},
};

constexpr ServeFlag kProcessFlags[] = {
    {"--engine-process,!--no-engine-process", flag::to<&ServeCommand::engine_process>,
     "Run the engine in a child process, which is restarted when it dies (default: on)"},
    {"--numa-bind,!--no-numa-bind", flag::to<&ServeCommand::numa, &NumaOptions::bind>,
     "Give each engine process separate NUMA nodes, if the host has several "
     "(default: on)"},
    {"--numa-bind-nodes", flag::to<&ServeCommand::numa, &NumaOptions::nodes>,
     "NUMA node of each process, ordered by engine, then by rank"},
    {"--numa-bind-cpus", flag::to<&ServeCommand::numa, &NumaOptions::processors>,
     "Processors of each process, each a list such as 0-15,32, instead of --numa-bind-nodes; "
     "VLLM_CPU_OMP_THREADS_BIND=\"0-15|16-31\" does the same"},
    {"--stand-ins", flag::to<&ServeCommand::stand_ins>,
     "Number of simulated servers in this process, on consecutive ports from --port on; needs --executor "
     "simulated",
     flag::range(1, 4096)},
    {"--headless", flag::to<&ServeCommand::headless>,
     "Run engines without a server, for a server on another host: hosts with --node-rank above 0, or with "
     "--data-parallel-start-rank"},
};

constexpr ServeFlag kChildFlags[] = {
    {kProcessorsFlag,
     flag::to<runtime_of, &RuntimeOptions::engine, &EngineOptions::device, &DeviceOptions::processors>},
    {kRunEngineFlag, flag::to<&ServeCommand::child, &ChildProcess::runs_engine>},
    {kRunRankFlag, flag::to<&ServeCommand::child, &ChildProcess::rank>},
};

constexpr ServeFlag kLogFlags[] = {
    {"--h11-max-incomplete-event-size", flag::to<&ServeCommand::http, &http::ServerOptions::header_bytes_max>,
     "Maximum bytes of a request's header", flag::range(1 << 10, 16 << 20)},
    {"--h11-max-header-count", flag::to<&ServeCommand::http, &http::ServerOptions::headers_max>,
     "Maximum number of fields in a request's header", flag::range(8, 10'000)},
    {"!--disable-log-stats", flag::to<&ServeCommand::log_stats, &LogStats::enabled>,
     "Do not log throughput, queue and cache"},
    {"--log-stats-interval",
     flag::to<&ServeCommand::log_stats, &LogStats::interval_s>,
     "Seconds between them",
     flag::range(0.1, 86'400.0),
     {.environment = "VLLM_LOG_STATS_INTERVAL"}},
    {"--enable-log-requests", flag::to<observe_of, &ObserveOptions::log_requests>,
     "Log a line per request; with --log-level debug also its prompt"},
    {"--max-log-len", flag::to<observe_of, &ObserveOptions::max_log_len>,
     "Maximum bytes of a prompt in the log (default: all)", flag::range(0, 1 << 30)},
    {"--log-format", flag::parsed<take_log_format>,
     "Log lines as text, or as json: {\"time\", \"level\", \"message\"}", OneOf{"text|json"}},
    log_level_flag<ServeCommand>("VLLM_LOGGING_LEVEL"),
    {"--server-dev-mode",
     flag::to<features_of, &ServeFeatures::dev_mode>,
     "Serve the routes for development: /server_info, /reset_prefix_cache, /sleep, /wake_up, "
     "/is_sleeping, /pause, /resume, /is_paused, /collective_rpc, /update_weights_from_disk",
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
     "Folder for records of finished requests, which `octavo replay` computes again; created if missing. "
     "They "
     "contain prompts and answers as token ids"},
    {"--record-bytes", flag::to<record_of, &RecordOptions::bytes_max>,
     "Maximum bytes of all files in --record; the oldest are deleted",
     flag::range(RecordOptions::kBytesMin, std::int64_t{1} << 50)},
    {"--record-media", flag::to<record_of, &RecordOptions::media>,
     "Record images, videos, sounds and embeddings of prompts, so that `octavo replay` can compute these "
     "requests: a record has the decoded pixels or numbers"},
    {"--record-hashes-only", flag::to<record_of, &RecordOptions::hashes_only>,
     "Record hashes instead of token ids, parameters and grammars; such records cannot be replayed"},
};

constexpr ServeFlag kOtherFlags[] = {
    {"--batch-dir", flag::parsed<take_batch_dir>,
     "Folder for /v1/files, /v1/batches and /v1/messages/batches, which continue after a restart; created if "
     "missing, for one server. Sets --scheduling-policy priority unless it is lpm: batches yield to other "
     "requests"},
    {"--batch-dir-bytes", flag::to<&ServeCommand::batch_dir_bytes>,
     "Maximum bytes of all files and answers in --batch-dir",
     flag::range(std::int64_t{1} << 20, std::int64_t{1} << 50)},
    {"--enable-sleep-mode", flag::to<features_of, &ServeFeatures::sleep_mode>,
     "Let POST /sleep free the KV cache (level 1) or also the weights (level 2); needs --server-dev-mode"},
    {"--shutdown-timeout", flag::to<&ServeCommand::shutdown_timeout_s>,
     "Seconds for running requests to finish after SIGTERM", flag::range(0, 3600)},
    {"--config", flag::nowhere, "YAML file of flags; those on the command line win"},
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
  add_flags(app, command, kServer, kListenFlags);
  add_flags(app, command, kServer, kAccessFlags);
  add_flags(app, command, kServer, kProcessFlags);
  add_flags(app, command, "", kChildFlags);
  add_flags(app, command, kServer, kLogFlags);
  add_profiler_flag(app, command.runtime.serve, kServer);
  add_flags(app, command, kServer, kAccountFlags);
  add_flags(app, command, kServer, kRecordFlags);
  add_flags(app, command, kServer, kOtherFlags);
  add_registration_flags(app, command.registration);
}

}  // namespace octavo
