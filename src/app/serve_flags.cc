#include "app/serve_flags.h"

#include "app/environment.h"

#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "app/engine_command.h"
#include "app/help_formatter.h"
#include "app/json_flags.h"
#include "app/structured_outputs_config.h"
#include "base/log.h"
#include "base/log_format.h"
#include "local/engine_flags.h"
#include "local/media_io.h"
#include "local/pooler_config.h"
#include "local/profiler_flag.h"

namespace octavo {
namespace {

template <class Names>
std::vector<std::string> texts(const Names& names) {
  return {names.begin(), names.end()};
}

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

// As VLLM_LOGGING_LEVEL has them, in either case.
std::optional<LogLevel> log_level_named(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == "debug" || name == "notset") return LogLevel::debug;
  if (name == "info") return LogLevel::info;
  if (name == "warning") return LogLevel::warning;
  if (name == "error" || name == "critical") return LogLevel::error;
  return std::nullopt;
}

void add_parser_flags(CLI::App& app, ServeCommand& c) {
  constexpr auto kGroup = "Tools and reasoning";
  auto* parser = app.add_option("--tool-call-parser", c.runtime.tool_call_parser,
                                "How the model writes tool calls, for --enable-auto-tool-choice")
                     ->check(CLI::IsMember(texts(grammar::tool_dialect_names())))
                     ->group(kGroup);
  app.add_flag("--enable-auto-tool-choice", c.auto_tool_choice,
               "tool_choice auto: find the calls that the model chooses to write")
      ->needs(parser)
      ->group(kGroup);
  app.add_flag("--exclude-tools-when-tool-choice-none", c.runtime.serve.rules.exclude_unused_tools,
               "Leave tools out of the prompt of requests that say tool_choice none")
      ->group(kGroup);
  app.add_option("--reasoning-parser", c.runtime.reasoning_parser,
                 "How the model marks its thoughts, which then come as `reasoning`")
      ->check(CLI::IsMember(texts(openai::reasoning_parsers())))
      ->group(kGroup);
  app.add_option_function<std::string>(
         "--structured-outputs-config",
         [&options = c.runtime.serve.rules.json](const std::string& json) {
           const auto given = parse_structured_outputs_config(json);
           if (!given)
             throw CLI::ValidationError("--structured-outputs-config",
                                        given.error().field + " " + given.error().message);
           options = *given;
         },
         R"(How JSON answers are held to schemas. As JSON: {"disable_any_whitespace": true, )"
         R"("unknown_keywords": "refuse", "unique_items": "refuse", "member_order": "schema"})")
      ->group(kGroup);
}

void add_template_flags(CLI::App& app, RuntimeOptions& r) {
  constexpr auto kGroup = "Chat templates";
  app.add_option("--chat-template", r.chat_template,
                 "File with a chat template, or the template itself, instead of the model's own")
      ->group(kGroup);
  app.add_option_function<std::string>(
         "--chat-template-content-format",
         [&r](const std::string& format) {
           r.serve.content_format = format == "openai"   ? ContentFormat::parts
                                    : format == "string" ? ContentFormat::string
                                                         : ContentFormat::automatic;
         },
         "How a content of several parts goes into the template: string (joined by line breaks), openai (as the "
         "list of parts), auto (as the template takes it)")
      ->check(CLI::IsMember({"auto", "string", "openai"}))
      ->default_str("auto")
      ->group(kGroup);
  app.add_flag("--trust-request-chat-template", r.serve.rules.trust_chat_templates,
               "Take chat_template of requests")
      ->group(kGroup);
  add_json_flag(
      app, "--default-chat-template-kwargs",
      [&r](const boost::json::object& kwargs) {
        r.serve.rules.default_template_kwargs = kwargs;
        return Result<>();
      },
      R"(JSON: arguments for the template that a request does not give, as {"enable_thinking": false})")
      ->group(kGroup);
  add_json_flag(
      app, "--mm-processor-kwargs",
      [&r](const boost::json::object& kwargs) {
        r.mm_processor_kwargs = kwargs;
        return Result<>();
      },
      R"(JSON: preprocessing of images, in place of the model's: {"size": {"longest_edge": 1024}} )"
      R"(makes fewer tiles of an image, {"do_image_splitting": false} one, {"max_pixels": 501760} smaller images)")
      ->group(kGroup);
  add_json_flag(
      app, "--media-io-kwargs", [&r](const boost::json::object& kwargs) { return read_media_io(kwargs, r.video_frames); },
      R"(JSON: choice of a video's frames, in place of the model's: {"video": {"num_frames": 16}} )"
      R"(spreads 16, -1 takes all, {"video": {"fps": 1}} one a second)")
      ->group(kGroup);
  add_json_flag(
      app, "--pooler-config",
      [&r](const boost::json::object& config) { return read_pooler_config(config, r); },
      R"(JSON: pooling of texts, in place of the model's: {"pooling_type": "MEAN"}, also CLS, LAST, ALL )"
      R"(and STEP; {"enable_chunked_processing": true, "max_embed_len": 100000} reads long texts in chunks)")
      ->group("Model");
  app.add_option("--response-role", r.serve.response_role, "Role of the messages in replies")
      ->capture_default_str()
      ->group(kGroup);
}

void add_reply_flags(CLI::App& app, ServeCommand& c) {
  constexpr auto kGroup = "Requests and replies";
  RuntimeOptions& r = c.runtime;
  ServeOptions& s = r.serve;
  app.add_option("--tokenizer", r.tokenizer, "Folder or file of the tokenizer; the model's own when left out")
      ->group("Model");
  app.add_option("--served-model-name", r.served_model_names,
                 "Names of the model in the API; replies have the first one (default: the model argument as "
                 "given, or demo without one)")
      ->group("Model");
  app.add_option("--generation-config", r.generation_config,
                 "Where sampling values come from that a request leaves out: auto (the model's "
                 "generation_config.json), vllm (nowhere), or a folder with such a file")
      ->capture_default_str()
      ->group(kGroup);
  add_json_flag(
      app, "--override-generation-config",
      [&r](const boost::json::object& config) { return read_generation_overrides(config, r); },
      R"(JSON: such values, above those of the file, as {"temperature": 0.5})")
      ->group(kGroup);
  app.add_flag("--enable-request-id-headers", s.features.request_id_headers,
               "Answer with X-Request-Id: the request's own, else a new one")
      ->group(kGroup);
  app.add_flag("--enable-prompt-tokens-details", s.features.prompt_tokens_details,
               "Report cached tokens in usage")
      ->group(kGroup);
  app.add_flag("--enable-per-request-metrics", s.features.request_metrics,
               "Times of an answer in its reply (metrics) and its header Server-Timing")
      ->group(kGroup);
  app.add_flag("--enable-force-include-usage", s.rules.force_include_usage, "Usage in every stream")
      ->group(kGroup);
  app.add_option("--stream-interval", s.rules.stream_interval,
                 "Minimum number of tokens in a chunk of a stream, except the first and the last chunk")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->group(kGroup);
  app.add_flag("--return-tokens-as-token-ids", s.rules.return_tokens_as_token_ids,
               "Tokens of log-probabilities as \"token_id:7\"")
      ->group(kGroup);
  app.add_flag("--enable-tokenizer-info-endpoint", s.features.tokenizer_info, "Serve /tokenizer_info")
      ->group(kGroup);
  app.add_option("--fingerprint-mode", c.fingerprint_mode,
                 "system_fingerprint: full or hash (version and configuration), custom "
                 "(--fingerprint-value), none")
      ->check(CLI::IsMember({"full", "hash", "custom", "none"}))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--fingerprint-value", c.fingerprint_value, "With --fingerprint-mode custom: what it is")
      ->group(kGroup);
}

void add_adapter_flags(CLI::App& app, ServeCommand& c) {
  constexpr auto kGroup = "LoRA";
  RuntimeOptions& r = c.runtime;
  app.add_option_function<std::vector<std::string>>(
         "--lora-modules",
         [&r](const std::vector<std::string>& texts) {
           r.lora_modules.clear();
           for (const std::string& text : texts) {
             auto module = read_lora_module(text);
             if (!module) throw CLI::ValidationError("--lora-modules", module.error().message);
             r.lora_modules.push_back(*std::move(module));
           }
         },
         R"(Adapters (PEFT's folders) to load at the start: NAME=PATH, or JSON as {"name": "a", "path": )"
         R"("folder", "base_model_name": "b"}; needs --enable-lora)")
      ->expected(1, -1)
      ->group(kGroup);
  app.add_flag("--allow-runtime-lora-updating", r.serve.features.change_adapters,
               "Serve /v1/load_lora_adapter and /v1/unload_lora_adapter")
      ->envname("VLLM_ALLOW_RUNTIME_LORA_UPDATING")
      ->group(kGroup);
}

void add_tls_flags(CLI::App& app, http::TlsOptions& tls) {
  constexpr auto kGroup = "Server";
  app.add_option("--ssl-certfile", tls.certfile,
                 "Serve https with the certificate (and those above it) in this PEM file")
      ->group(kGroup);
  app.add_option("--ssl-keyfile", tls.keyfile,
                 "PEM file of its private key (default: the certificate's file)")
      ->group(kGroup);
  app.add_option("--ssl-ca-certs", tls.ca_certs, "PEM file of those who may sign clients' certificates")
      ->group(kGroup);
  app.add_option("--ssl-cert-reqs", tls.cert_reqs,
                 "Clients' certificates: 0 not asked for, 1 checked where there is one, 2 required")
      ->check(CLI::Range(0, 2))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--ssl-ciphers", tls.ciphers,
                 "Ciphers of TLS 1.2, as OpenSSL lists them (default: OpenSSL's)")
      ->group(kGroup);
  app.add_flag("--enable-ssl-refresh", tls.refresh, "Read these files again when they change")->group(kGroup);
}

void add_server_flags(CLI::App& app, ServeCommand& c) {
  constexpr auto kGroup = "Server";
  c.http.host = "0.0.0.0";
  c.http.port = 8000;
  ServeOptions& s = c.runtime.serve;
  app.add_option("--host", c.http.host, "Address to listen on")->capture_default_str()->group(kGroup);
  app.add_option("--port", c.http.port, "Port to listen on; any free one when 0")
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--uds", c.http.uds, "Path of a Unix socket to listen on, in place of host and port")
      ->group(kGroup);
  app.add_flag(
         "--reuse-port", c.http.reuse_port,
         "Share the port with other servers (SO_REUSEPORT), and listen only when the model is loaded: for "
         "restarts without a gap")
      ->group(kGroup);
  add_tls_flags(app, c.http.tls);
  app.add_option("--api-key", s.access.api_keys,
                 "Key that clients must send; can be given several times. VLLM_API_KEY in the environment "
                 "also sets it")
      ->envname("OCTAVO_API_KEY")
      ->group(kGroup);
  app.add_option(
         "--client-header", s.access.client_header,
         "Field of a request's header that names its tenant, in place of its key or address; only behind a "
         "gateway that sets it")
      ->group(kGroup);
  app.add_option(
         "--allowed-media-domains", s.media.sources.domains,
         "Hosts from which images and audio are fetched by http: and https:; without it nothing is fetched")
      ->group(kGroup);
  app.add_option("--allowed-local-media-path", s.media.sources.local_path,
                 "Folder below which file: addresses of images and sounds are read")
      ->check(CLI::ExistingDirectory)
      ->group(kGroup);
  app.add_flag("--isolate-prefix-cache", s.access.isolate_prefix_cache,
               "Tenants (by key, address or --client-header) share no cached prefixes")
      ->group(kGroup);
  const auto add_list = [&](const char* name, std::vector<std::string>& list, const char* help) {
    app.add_option_function<std::string>(
           name,
           [&list, name](const std::string& text) {
             if (const auto read = read_text_list(text, list); !read)
               throw CLI::ValidationError(name, read.error().message);
           },
           help)
        ->group(kGroup);
  };
  add_list("--allowed-origins", c.cors.origins, R"(JSON list: web pages that may use the server, as ["*"])");
  add_list("--allowed-methods", c.cors.methods, "JSON list: methods that they may use (default: all)");
  add_list("--allowed-headers", c.cors.headers, "JSON list: header fields that they may send (default: all)");
  app.add_flag("--allow-credentials", c.cors.allow_credentials, "They may send cookies")->group(kGroup);
  app.add_flag("!--no-page", s.features.page, "No web page at /")->group(kGroup);
  app.add_option("--root-path", s.root_path,
                 "Prefix of paths that a proxy before the server leaves in place: paths work with it and without")
      ->group(kGroup);
  app.add_flag("--engine-process,!--no-engine-process", c.engine_process,
               "Run the engine in a child process, which is restarted when it dies (default: on)")
      ->group(kGroup);
  app.add_flag("--numa-bind,!--no-numa-bind", c.numa.bind,
               "Give each engine process separate NUMA nodes, if the host has several "
               "(default: on)")
      ->group(kGroup);
  add_data_parallel_flags(app, c.data_parallel);
  app.add_option("--numa-bind-nodes", c.numa.nodes, "The node of each process, engine by engine, rank by rank")
      ->group(kGroup);
  app.add_option("--numa-bind-cpus", c.numa.processors,
                 "Or its processors, each a list such as 0-15,32; VLLM_CPU_OMP_THREADS_BIND=\"0-15|16-31\" does the same")
      ->group(kGroup);
  app.add_option(kProcessorsFlag, c.runtime.engine.processors)->group("");
  app.add_option("--stand-ins", c.stand_ins,
                 "Number of simulated servers in this process, on consecutive ports from --port on; needs --executor simulated")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str()
      ->group(kGroup);
  app.add_flag("--headless", c.headless,
               "No server: of hosts with a --node-rank other than 0, which have none anyway, and of those whose "
               "engines belong to a server on another host (--data-parallel-start-rank)")
      ->group(kGroup);
  app.add_flag(kRunEngineFlag, c.run_engine)->group("");  // hidden: what that process is started with
  app.add_option(kRunRankFlag, c.run_rank)->group("");    // and those of its ranks
  app.add_option("--h11-max-incomplete-event-size", c.http.header_bytes_max,
                 "Most bytes of a request's header")
      ->check(CLI::Range(1 << 10, 16 << 20))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--h11-max-header-count", c.http.headers_max, "Most fields of a request's header")
      ->check(CLI::Range(8, 10'000))
      ->capture_default_str()
      ->group(kGroup);
  app.add_flag("!--disable-log-stats", c.log_stats,
               "No log lines of throughput, queue and cache while there is work")
      ->group(kGroup);
  app.add_option("--log-stats-interval", c.log_stats_interval_s, "Seconds between them")
      ->check(CLI::Range(0.1, 86'400.0))
      ->capture_default_str()
      ->envname("VLLM_LOG_STATS_INTERVAL")
      ->group(kGroup);
  app.add_flag("--enable-log-requests", s.observe.log_requests,
               "A log line for each request, at level debug with its prompt")
      ->group(kGroup);
  app.add_option("--max-log-len", s.observe.max_log_len, "Most bytes of a prompt in the log (default: all)")
      ->check(CLI::Range(0, 1 << 30))
      ->group(kGroup);
  app.add_option_function<std::string>(
         "--log-format",
         [](const std::string& name) { set_log_format(name == "json" ? LogFormat::json : LogFormat::text); },
         "Log lines as text, or as json: {\"time\", \"level\", \"message\"}")
      ->check(CLI::IsMember({"text", "json"}))
      ->group(kGroup);
  app.add_option("--otlp-traces-endpoint", c.otlp_traces_endpoint,
                 "Send a span for each answer to this collector: OTLP over HTTP as JSON, as "
                 "http://HOST:4318/v1/traces")
      ->group(kGroup);
  app.add_option_function<std::string>(
         "--log-level", [](const std::string& name) { set_log_level(*log_level_named(name)); },
         "Least level of log lines: debug, info, warning, error, critical")
      ->check([](const std::string& name) {
        return log_level_named(name) ? std::string() : "must be debug, info, warning, error or critical";
      })
      ->envname("VLLM_LOGGING_LEVEL")
      ->group(kGroup);
  app.add_flag("--server-dev-mode", s.features.dev_mode,
               "Serve the routes for development: /server_info, /reset_prefix_cache, /sleep, /wake_up, "
               "/is_sleeping, /pause, /resume, /is_paused, /collective_rpc, /update_weights_from_disk")
      ->envname("VLLM_SERVER_DEV_MODE")
      ->group(kGroup);
  add_profiler_flag(app, s)->group(kGroup);
  app.add_option("--kv-offloading-size", c.kv_offloading_gib,
                 "GiB of a tier of the KV cache: on GPUs in host memory, on CPUs on disk, in octavo/kv of the user's "
                 "cache folder; 0: none. In another folder, or both: --kv-transfer-config")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str()
      ->group("KV cache");
  app.add_option("--kv-offloading-backend", c.kv_offloading_backend, "What that tier is: native")
      ->check(CLI::IsMember({"native"}))
      ->capture_default_str()
      ->group("KV cache");
  app.add_flag(
         "--enable-sleep-mode", s.features.sleep_mode,
         "POST /sleep gives the memory of the KV cache (level 1) and of the weights (level 2) back, with "
         "--server-dev-mode")
      ->group(kGroup);
  app.add_option("--shutdown-timeout", c.shutdown_timeout_s,
                 "Seconds that requests in flight get to finish after SIGTERM")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--config", "YAML file of flags; those on the command line win")->group(kGroup);
  app.add_flag("--list-flags", c.list_flags,
               "Print what becomes of each flag of `vllm serve` (docs/reference/flags.md), and end")
      ->group(kGroup);
  app.add_flag("--list-routes", c.list_routes, "Print the OpenAPI document of all routes, and end")
      ->group(kGroup);
  app.add_flag("--list-metrics", c.list_metrics, "Print what each metric says (docs/reference/metrics.md), and end")
      ->group(kGroup);
}

}  // namespace

void add_serve_flags(CLI::App& app, ServeCommand& command) {
  app.formatter(std::make_shared<ShortHelpFormatter>(kCommonFlags));
  app.set_help_all_flag("--help-all", "Print all flags and exit");
  add_engine_flags(app, command.runtime.engine);
  add_hub_flags(app, command.runtime.hub, environment);
  add_parser_flags(app, command);
  add_template_flags(app, command.runtime);
  add_reply_flags(app, command);
  add_adapter_flags(app, command);
  add_server_flags(app, command);
}

}  // namespace octavo
