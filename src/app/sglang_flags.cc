#include "app/sglang_flags.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace octavo {
namespace {

enum class Takes : std::uint8_t { nothing, one, several };

struct SglangFlag {
  std::string_view name;
  Takes takes;
  std::string_view instead;  // the replacement in Octavo, or the reason why none is needed
};

constexpr std::string_view kNoGrpc = "workers are reached over HTTP, and parse their own answers";
constexpr std::string_view kWorkersStore =
    "workers keep responses, and each id goes to the worker that has it";

constexpr SglangFlag kSglangFlags[] = {
    {"--eviction-interval", Takes::one, "each insertion keeps the prefix tree within --max-tree-size"},
    {"--eviction-interval-secs", Takes::one, "each insertion keeps the prefix tree within --max-tree-size"},
    {"--worker-startup-timeout-secs", Takes::one, "a worker may start at any time"},
    {"--dp-aware", Takes::nothing, "data-parallel ranks are found by the workers' metrics"},
    {"--enable-igw", Takes::nothing, "each request goes to the workers that serve its model"},
    {"--backend", Takes::one, "any server with OpenAI's API is a worker"},
    {"--prometheus-host", Takes::one, "GET /metrics is at --host"},
    {"--prometheus-port", Takes::one, "GET /metrics is at --port"},
    {"--log-dir", Takes::one, "the log goes to standard error"},
    {"--disable-health-check", Takes::nothing, "--health-check-endpoint names a path that workers answer"},
    {"--rate-limit-tokens-per-second", Takes::one, "--tenants limits the requests per second"},
    {"--chat-template", Takes::one, "the template of --tokenizer-path is used"},
    {"--reasoning-parser", Takes::one, kNoGrpc},
    {"--tool-call-parser", Takes::one, kNoGrpc},
    {"--mcp-config-path", Takes::one, kNoGrpc},
    {"--history-backend", Takes::one, kWorkersStore},
    {"--bootstrap-port-annotation", Takes::one, "the annotation sglang.ai/bootstrap-port of a pod is read"},
    {"--enable-trace", Takes::nothing, "--otlp-traces-endpoint turns traces on"},
    {"--router-selector", Takes::several, "--router-peers names the other routers"},
    {"--router-mesh-port-annotation", Takes::one, "--router-peers names the other routers"},
};

}  // namespace

void add_sglang_flags(CLI::App& command) {
  for (const SglangFlag& flag : kSglangFlags) {
    const std::string name(flag.name), help = "No effect: " + std::string(flag.instead);
    const auto note = [&flag] { log_warning("{} has no effect: {}", flag.name, flag.instead); };
    if (flag.takes == Takes::nothing) {
      command.add_flag_callback(name, note, help)->group("Without effect");
      continue;
    }
    command
        .add_option_function<std::vector<std::string>>(
            name, [note](const std::vector<std::string>&) { note(); }, help)
        ->expected(1, flag.takes == Takes::one ? 1 : 1'000)
        ->group("Without effect");
  }
}

}  // namespace octavo
