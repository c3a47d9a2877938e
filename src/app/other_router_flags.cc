#include "app/other_router_flags.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace octavo {
namespace {

enum class Takes : std::uint8_t { nothing, one, several };

struct OtherFlag {
  std::string_view name;
  Takes takes;
  std::string_view instead;  // what to use in Octavo instead of the flag, or why nothing is needed
  // true: giving the flag is an error, because the user relies on it for security
  bool is_refused = false;
};

constexpr std::string_view kNoGrpc = "workers are reached over HTTP and parse their own answers";
constexpr std::string_view kWorkersStore =
    "workers store responses, and the router sends each id to the worker that has it";

constexpr std::string_view kTokenizes =
    "each prompt is tokenised once, on threads outside of the event loops";
constexpr std::string_view kTierCredits =
    "--kv-overlap-score-weight weighs cached blocks of every tier alike";
constexpr std::string_view kEventSources =
    "use --kv-events for --worker-urls; POST /workers and lists of workers name the events of a worker";
constexpr std::string_view kPrograms =
    "the queue (--queue-size) is shared by tenants, or by x-llm-d-inference-fairness-id";
constexpr std::string_view kNoWasm = "run a filter in a gateway before the router, such as Envoy's";
constexpr std::string_view kOneKey =
    "use --api-key for the operator and --tenants for other clients; tenants cannot change the list of "
    "workers";

constexpr OtherFlag kOtherFlags[] = {
    {"--eviction-interval", Takes::one, "each insertion keeps the prefix tree within --max-tree-size"},
    {"--eviction-interval-secs", Takes::one, "each insertion keeps the prefix tree within --max-tree-size"},
    {"--worker-startup-timeout-secs", Takes::one, "a worker may start at any time"},
    {"--dp-aware", Takes::nothing, "data-parallel ranks are found by the workers' metrics"},
    {"--enable-igw", Takes::nothing, "each request goes to the workers that serve its model"},
    {"--backend", Takes::one, "any server with OpenAI's API is a worker"},
    {"--prometheus-host", Takes::one, "GET /metrics uses --host"},
    {"--prometheus-port", Takes::one, "GET /metrics uses --port"},
    {"--log-dir", Takes::one, "the log goes to standard error"},
    {"--disable-health-check", Takes::nothing, "the router always checks the health of its workers"},
    {"--rate-limit-tokens-per-second", Takes::one, "--tenants limits the number of requests per second"},
    {"--chat-template", Takes::one, "the chat template comes from --tokenizer-path"},
    {"--reasoning-parser", Takes::one, kNoGrpc},
    {"--tool-call-parser", Takes::one, kNoGrpc},
    {"--mcp-config-path", Takes::one, kNoGrpc},
    {"--history-backend", Takes::one, kWorkersStore},
    {"--bootstrap-port-annotation", Takes::one,
     "the router reads the annotation sglang.ai/bootstrap-port of pods"},
    {"--enable-trace", Takes::nothing, "--otlp-traces-endpoint turns traces on"},
    {"--router-selector", Takes::several, "--router-peers names the other routers"},
    {"--router-mesh-port-annotation", Takes::one, "--router-peers names the other routers"},
    {"--mini-lb", Takes::nothing, "--policy random makes the same choice"},
    {"--tokenizer-cache-enable-l0", Takes::nothing, kTokenizes},
    {"--tokenizer-cache-l0-max-entries", Takes::one, kTokenizes},
    {"--tokenizer-cache-enable-l1", Takes::nothing, kTokenizes},
    {"--tokenizer-cache-l1-max-memory", Takes::one, kTokenizes},
    {"--prometheus-duration-buckets", Takes::several, "the histograms have fixed buckets"},
    {"--control-plane-audit-enabled", Takes::nothing, "changes to the list of workers are always logged"},
    {"--oracle-wallet-path", Takes::one, kWorkersStore},
    {"--oracle-tns-alias", Takes::one, kWorkersStore},
    {"--oracle-connect-descriptor", Takes::one, kWorkersStore},
    {"--oracle-username", Takes::one, kWorkersStore},
    {"--oracle-password", Takes::one, kWorkersStore},
    {"--oracle-pool-min", Takes::one, kWorkersStore},
    {"--oracle-pool-max", Takes::one, kWorkersStore},
    {"--oracle-pool-timeout-secs", Takes::one, kWorkersStore},
    {"--postgres-db-url", Takes::one, kWorkersStore},
    {"--postgres-pool-max", Takes::one, kWorkersStore},
    {"--redis-url", Takes::one, kWorkersStore},
    {"--redis-pool-max", Takes::one, kWorkersStore},
    {"--redis-retention-days", Takes::one, kWorkersStore},
    {"--intra-node-data-parallel-size", Takes::one, "data-parallel ranks are found by the workers' metrics"},
    {"--vllm-discovery-address", Takes::one, "octavo serve registers itself: --register-router"},
    {"--kv-connector", Takes::one, "the workers' --kv-transfer-config names it"},
    {"--enable-program-scheduling", Takes::nothing, kPrograms},
    {"--program-scheduling-config-json", Takes::one, kPrograms},
    {"--kv-penalty-host", Takes::one, kTierCredits},
    {"--kv-penalty-external", Takes::one, kTierCredits},
    {"--kv-penalty-disk", Takes::one, kTierCredits},
    {"--kv-aware-session-affinity-ttl-secs", Takes::one, "kv_aware finds the replica that has the prefix"},
    {"--kv-event-source", Takes::one, kEventSources},
    {"--kv-event-replay-source", Takes::one, kEventSources},
    {"--pd-kv-events", Takes::one, kEventSources},
    {"--kv-event-block-size", Takes::one, "events contain the block size"},
    {"--kv-event-model", Takes::one, "workers list their models"},
    {"--wasm-middleware", Takes::one, kNoWasm, true},
    {"--wasm-middleware-sha256", Takes::one, kNoWasm, true},
    {"--wasm-middleware-route", Takes::one, kNoWasm, true},
    {"--control-plane-api-keys", Takes::several, kOneKey, true},
    {"--jwt-issuer", Takes::one, kOneKey, true},
    {"--jwt-audience", Takes::one, kOneKey, true},
    {"--jwt-jwks-uri", Takes::one, kOneKey, true},
    {"--jwt-role-mapping", Takes::several, kOneKey, true},
};

}  // namespace

void add_other_router_flags(CLI::App& command) {
  for (const OtherFlag& flag : kOtherFlags) {
    const std::string name(flag.name),
        help = fmt::format("{}: {}", flag.is_refused ? "Refused" : "No effect", flag.instead);
    const auto note = [&flag] {
      if (flag.is_refused)
        throw CLI::ValidationError(std::string(flag.name), fmt::format("is not supported: {}", flag.instead));
      log_warning("{} has no effect: {}", flag.name, flag.instead);
    };
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
