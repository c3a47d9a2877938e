// octavo serve
#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/engine_flags.h"
#include "app/runtime.h"
#include "app/version.h"
#include "base/clock.h"
#include "base/log.h"
#include "serve/api_server.h"

namespace octavo {
namespace {

struct ServeCommand {
  RuntimeOptions runtime;
  http::ServerOptions http;
  std::string generation_config = "auto";
  bool auto_tool_choice = false;
  int shutdown_timeout_s = 30;
};

template <class Names>
std::vector<std::string> texts(const Names& names) {
  return {names.begin(), names.end()};
}

void add_parser_flags(CLI::App& command, ServeCommand& c) {
  auto* parser = command
                     .add_option("--tool-call-parser", c.runtime.tool_call_parser,
                                 "How the model writes tool calls, for --enable-auto-tool-choice")
                     ->check(CLI::IsMember(texts(grammar::tool_dialect_names())))
                     ->group("Tools and reasoning");
  command
      .add_flag("--enable-auto-tool-choice", c.auto_tool_choice,
                "tool_choice auto: find the calls that the model chooses to write")
      ->needs(parser)
      ->group("Tools and reasoning");
  command
      .add_flag("--exclude-tools-when-tool-choice-none", c.runtime.serve.rules.exclude_unused_tools,
                "Leave tools out of the prompt of requests that say tool_choice none")
      ->group("Tools and reasoning");
  command
      .add_option("--reasoning-parser", c.runtime.reasoning_parser,
                  "How the model marks its thoughts, which then come as `reasoning`")
      ->check(CLI::IsMember(texts(openai::reasoning_parsers())))
      ->group("Tools and reasoning");
}

void add_flags(CLI::App& command, ServeCommand& c) {
  c.http.host = "0.0.0.0";
  c.http.port = 8000;
  ServeOptions& s = c.runtime.serve;
  add_engine_flags(command, c.runtime.engine);
  add_parser_flags(command, c);
  command.add_option("--host", c.http.host, "Address to listen on")->capture_default_str()->group("Server");
  command.add_option("--port", c.http.port, "Port to listen on; any free one when 0")
      ->capture_default_str()
      ->group("Server");
  command.add_option("--api-key", s.api_keys, "Keys that clients must show; may be given several times")
      ->envname("OCTAVO_API_KEY")
      ->group("Server");
  command
      .add_option("--served-model-name", c.runtime.served_model_names,
                  "Names of the model in the API; the first one is written into replies")
      ->group("Server");
  command
      .add_option("--chat-template", c.runtime.chat_template_file,
                  "File with a chat template instead of the model's own")
      ->check(CLI::ExistingFile)
      ->group("Server");
  command
      .add_option("--generation-config", c.generation_config,
                  "auto: generation_config.json's values where a request says nothing; vllm: ignore them")
      ->check(CLI::IsMember({"auto", "vllm"}))
      ->capture_default_str()
      ->group("Server");
  command.add_flag("--enable-request-id-headers", s.request_id_headers, "Echo X-Request-Id")->group("Server");
  command
      .add_flag("--enable-prompt-tokens-details", s.prompt_tokens_details, "Report cached tokens in usage")
      ->group("Server");
  command
      .add_flag("--enable-force-include-usage", s.rules.force_include_usage,
                "Usage at the end of every stream")
      ->group("Server");
  command.add_flag("--enable-log-requests", s.log_requests, "A log line for each request")->group("Server");
  command
      .add_option("--shutdown-timeout", c.shutdown_timeout_s,
                  "Seconds that answers in flight get when the server is told to stop")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str()
      ->group("Server");
}

Result<> serve(ServeCommand& c) {
  // Blocked before any thread starts, so that none of them but this one ever sees a signal.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const std::int64_t started = now_us();
  c.runtime.model_sampling_defaults = c.generation_config == "auto";
  c.runtime.serve.version = kVersion;
  if (!c.auto_tool_choice) c.runtime.tool_call_parser.clear();
  c.http.cors = http::CorsOptions{};
  TRY(const auto runtime, start_runtime(std::move(c.runtime)));
  TRY(const auto server, ApiServer::start(runtime->service, c.http));
  const LoadedEngine& loaded = runtime->loaded;
  log_info("{}: {:.2f} GB of weights, {} KV blocks ({:.2f} GB), context of {} tokens",
           loaded.spec.architecture, static_cast<double>(loaded.weight_bytes) * 1e-9, loaded.num_blocks,
           static_cast<double>(loaded.cache_bytes) * 1e-9, loaded.max_model_len);
  log_info("ready on http://{}:{} after {:.2f} s", c.http.host, server->port(),
           static_cast<double>(now_us() - started) * 1e-6);

  int signal = 0;
  sigwait(&signals, &signal);
  log_info("stopping: answers in flight get up to {} s", c.shutdown_timeout_s);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // a second signal ends the program at once
  server->stop(c.shutdown_timeout_s * 1000);
  return {};
}

}  // namespace

void add_serve(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand("serve", "Serve a model over an OpenAI-compatible HTTP API");
  auto options = std::make_shared<ServeCommand>();
  add_flags(*command, *options);
  command->callback([options, &outcome] {
    if (const auto served = serve(*options); !served) outcome.report(served.error());
  });
}

}  // namespace octavo
