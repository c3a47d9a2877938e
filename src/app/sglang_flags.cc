#include "app/sglang_flags.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace octavo {
namespace {

enum class SglangTakes : std::uint8_t { nothing, one, several };

struct SglangFlag {
  std::string_view name;
  SglangTakes takes;
  std::string_view instead;  // what does the same here, or why nothing has to
};

constexpr std::string_view kNoGrpc = "workers are reached over HTTP, and parse their own answers";
constexpr std::string_view kWorkersStore =
    "workers keep responses, and each id goes to the worker that has it";

constexpr SglangFlag kSglangFlags[] = {
    {"--eviction-interval", SglangTakes::one, "each insertion keeps the prefix tree within --max-tree-size"},
    {"--eviction-interval-secs", SglangTakes::one, "each insertion keeps the prefix tree within --max-tree-size"},
    {"--worker-startup-timeout-secs", SglangTakes::one, "a worker may start at any time"},
    {"--dp-aware", SglangTakes::nothing, "data-parallel ranks are found by the workers' metrics"},
    {"--enable-igw", SglangTakes::nothing, "each request goes to the workers that serve its model"},
    {"--backend", SglangTakes::one, "any server with OpenAI's API is a worker"},
    {"--prometheus-host", SglangTakes::one, "GET /metrics is at --host"},
    {"--prometheus-port", SglangTakes::one, "GET /metrics is at --port"},
    {"--log-dir", SglangTakes::one, "the log goes to standard error"},
    {"--disable-health-check", SglangTakes::nothing, "--health-check-endpoint names a path that workers answer"},
    {"--rate-limit-tokens-per-second", SglangTakes::one, "--tenants limits the requests per second"},
    {"--chat-template", SglangTakes::one, "the template of --tokenizer-path is used"},
    {"--reasoning-parser", SglangTakes::one, kNoGrpc},
    {"--tool-call-parser", SglangTakes::one, kNoGrpc},
    {"--mcp-config-path", SglangTakes::one, kNoGrpc},
    {"--history-backend", SglangTakes::one, kWorkersStore},
    {"--bootstrap-port-annotation", SglangTakes::one, "pods of prefill workers need no annotation"},
    {"--enable-trace", SglangTakes::nothing, "trace headers go to the workers, which write spans"},
    {"--otlp-traces-endpoint", SglangTakes::one, "trace headers go to the workers, which write spans"},
    {"--router-selector", SglangTakes::several, "--router-peers names the other routers"},
    {"--router-mesh-port-annotation", SglangTakes::one, "--router-peers names the other routers"},
};

}  // namespace

void add_sglang_flags(CLI::App& command) {
  for (const SglangFlag& flag : kSglangFlags) {
    const std::string name(flag.name), help = "No effect: " + std::string(flag.instead);
    const auto note = [&flag] { log_warning("{} has no effect: {}", flag.name, flag.instead); };
    if (flag.takes == SglangTakes::nothing) {
      command.add_flag_callback(name, note, help)->group("Without effect");
      continue;
    }
    command
        .add_option_function<std::vector<std::string>>(
            name, [note](const std::vector<std::string>&) { note(); }, help)
        ->expected(1, flag.takes == SglangTakes::one ? 1 : 1'000)
        ->group("Without effect");
  }
}

}  // namespace octavo
