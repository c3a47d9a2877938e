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

constexpr std::string_view kListsModels = "workers list their models";
constexpr std::string_view kDiscovery =
    "name the workers by --worker-urls, --worker-file, --worker-etcd or --service-discovery";
constexpr std::string_view kAlwaysTracked =
    "the router always counts the prompts, blocks and requests in flight at each worker";
constexpr std::string_view kIndexInMemory =
    "the index of cached blocks is in the router's memory; --router-warm-from copies it from another router";
constexpr std::string_view kBusy =
    "the router learns a worker's limit when the worker answers 429 or 503; --queue-size keeps requests";
constexpr std::string_view kCosts =
    "--kv-overlap-score-weight and --kv-delay-weight are the weights of kv_aware";
constexpr std::string_view kLearnedTimes = "kv_aware measures the speed of each worker";
constexpr std::string_view kPlanes = "workers are reached over HTTP; their KV events use ZeroMQ";
constexpr std::string_view kEngineParses = "the workers parse their own answers";
constexpr std::string_view kMetricsAreServed = "GET /metrics has the figures";
constexpr std::string_view kTraces = "use --otlp-traces-endpoint URL";
constexpr std::string_view kBatchFolder = "use --batch-dir FOLDER";
constexpr std::string_view kRoles =
    "use --prefill URL and --decode URL, or --prefill-selector and --decode-selector";
constexpr std::string_view kKvLookup =
    "use --kv-events with the workers' addresses of KV events, and --policy kv_aware";

constexpr OtherFlag kOtherFlags[] = {
    // SGLang's router and vllm-router
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

    // the router of vLLM's Production Stack
    {"--static-backends", Takes::one, "use --worker-urls, with a space between the URLs", true},
    {"--static-models", Takes::one, kListsModels},
    {"--static-aliases", Takes::one, "give the aliases to the workers, with --served-model-name", true},
    {"--static-model-types", Takes::one, "health checks are GET /health, for every type of model"},
    {"--static-model-labels", Takes::one, kRoles},
    {"--static-backend-health-checks", Takes::nothing, "the router always checks the health of its workers"},
    {"--static-backend-health-check-interval", Takes::one, "use --health-check-interval-secs"},
    {"--static-backend-health-check-timeout-seconds", Takes::one, "use --health-check-timeout-secs"},
    {"--backend-health-check-timeout-seconds", Takes::one, "use --health-check-timeout-secs"},
    {"--routing-logic", Takes::one,
     "use --policy: roundrobin is round_robin, session is consistent_hashing, kvaware and prefixaware are "
     "kv_aware, disaggregated_prefill is the flag --pd-disaggregation",
     true},
    {"--session-key", Takes::one,
     "the policies read the session from X-Session-ID, X-User-ID or fields of the body: send it "
     "there",
     true},
    {"--k8s-label-selector", Takes::one, "use --service-discovery (without a value) and --selector key=value",
     true},
    {"--k8s-port", Takes::one, "use --service-discovery-port", true},
    {"--k8s-namespace", Takes::one, "use --service-discovery-namespace", true},
    {"--k8s-service-discovery-type", Takes::one, "--service-discovery uses the addresses of the pods"},
    {"--k8s-watcher-timeout-seconds", Takes::one, "a watch that ends is started again"},
    {"--prefill-model-labels", Takes::one, kRoles, true},
    {"--decode-model-labels", Takes::one, kRoles, true},
    {"--kv-aware-threshold", Takes::one, kCosts},
    {"--prefix-min-match-length", Takes::one, kCosts},
    {"--lmcache-controller-port", Takes::one, kKvLookup},
    {"--lmcache-controller-reply-port", Takes::one, kKvLookup},
    {"--lmcache-controller-heartbeat-port", Takes::one, kKvLookup},
    {"--lmcache-health-check-interval", Takes::one, kKvLookup},
    {"--lmcache-worker-timeout", Takes::one, kKvLookup},
    {"--max-instance-failover-reroute-attempts", Takes::one, "use --retry-max-retries"},
    {"--dynamic-config-yaml", Takes::one, "use --worker-file, which is read again when it changes", true},
    {"--dynamic-config-json", Takes::one, "use --worker-file, which is read again when it changes", true},
    {"--external-providers-config", Takes::one, "name each provider's URL in --worker-urls", true},
    {"--enable-batch-api", Takes::nothing, kBatchFolder, true},
    {"--file-storage-path", Takes::one, kBatchFolder, true},
    {"--file-storage-class", Takes::one, kBatchFolder},
    {"--batch-processor", Takes::one, kBatchFolder},
    {"--callbacks", Takes::one, kNoWasm, true},
    {"--request-rewriter", Takes::one, "the router does not change requests"},
    {"--feature-gates", Takes::one, "there is no semantic cache and no detection of personal data", true},
    {"--root-path", Takes::one, "remove the prefix of the path in a gateway before the router", true},
    {"--engine-stats-interval", Takes::one,
     "the router reads the metrics of its workers several times a second"},
    {"--request-stats-window", Takes::one, kMetricsAreServed},
    {"--log-stats", Takes::nothing, kMetricsAreServed},
    {"--log-stats-interval", Takes::one, kMetricsAreServed},
    {"--log-format", Takes::one, "the log is text; --access-log writes a line of JSON for each request"},
    {"--sentry-dsn", Takes::one, kTraces},
    {"--sentry-traces-sample-rate", Takes::one, kTraces},
    {"--sentry-profile-session-sample-rate", Takes::one, kTraces},
    {"--otel-endpoint", Takes::one, kTraces},
    {"--otel-service-name", Takes::one, "the service's name is octavo-route"},
    {"--otel-secure", Takes::one, "the scheme of --otlp-traces-endpoint decides"},

    // Dynamo's frontend and router
    {"--http-host", Takes::one, "use --host", true},
    {"--http-port", Takes::one, "use --port", true},
    {"--router-mode", Takes::one,
     "use --policy: kv is kv_aware, round-robin is round_robin, power-of-two is power_of_two, least-loaded "
     "is "
     "least_loaded, random is random; direct is consistent_hashing with the header X-SMG-Target-Worker",
     true},
    {"--load-aware,--no-load-aware", Takes::nothing, "use --policy least_loaded"},
    {"--discovery-backend", Takes::one, kDiscovery, true},
    {"--namespace", Takes::one, kDiscovery, true},
    {"--namespace-prefix", Takes::one, kDiscovery, true},
    {"--endpoint", Takes::one, kDiscovery, true},
    {"--model-name", Takes::one, kListsModels},
    {"--kv-cache-block-size", Takes::one, "events contain the block size"},
    {"--router-block-size,--block-size", Takes::one, "events contain the block size"},
    {"--router-kv-overlap-score-weight", Takes::one, "use --kv-overlap-score-weight"},
    {"--router-kv-overlap-score-credit", Takes::one, kCosts},
    {"--router-kv-overlap-score-credit-decay", Takes::one, kCosts},
    {"--router-prefill-load-scale", Takes::one, kCosts},
    {"--router-decode-active-request-weight", Takes::one, kCosts},
    {"--router-host-cache-hit-weight", Takes::one, kTierCredits},
    {"--router-disk-cache-hit-weight", Takes::one, kTierCredits},
    {"--shared-cache-multiplier", Takes::one, kTierCredits},
    {"--shared-cache-type", Takes::one, kTierCredits},
    {"--router-kv-events,--no-router-kv-events,--no-kv-events", Takes::nothing,
     "--kv-events names the addresses; without events the router assumes that workers keep prompts for "
     "--router-ttl-secs"},
    {"--router-predicted-ttl-secs", Takes::one, "prompts that were just sent always count, also with events"},
    {"--router-approximate-cache-policy", Takes::one, "--router-ttl-secs limits the assumed caches"},
    {"--router-max-tree-size", Takes::one, "use --max-tree-size"},
    {"--router-prune-target-ratio", Takes::one, "each insertion keeps the index within its limit"},
    {"--router-event-threads", Takes::one, "one thread applies events without delaying decisions"},
    {"--router-replica-sync,--no-router-replica-sync", Takes::nothing,
     "use --router-sync and --router-peers"},
    {"--router-snapshot-threshold", Takes::one, kIndexInMemory},
    {"--router-reset-states,--no-router-reset-states", Takes::nothing, kIndexInMemory},
    {"--router-durable-kv-events,--no-router-durable-kv-events", Takes::nothing, kIndexInMemory},
    {"--use-remote-indexer,--no-use-remote-indexer", Takes::nothing, kIndexInMemory},
    {"--serve-indexer,--no-serve-indexer", Takes::nothing, kIndexInMemory},
    {"--router-track-active-blocks,--no-router-track-active-blocks", Takes::nothing, kAlwaysTracked},
    {"--router-track-output-blocks,--no-router-track-output-blocks", Takes::nothing, kAlwaysTracked},
    {"--router-track-prefill-tokens,--no-router-track-prefill-tokens", Takes::nothing, kAlwaysTracked},
    {"--router-assume-kv-reuse,--no-router-assume-kv-reuse", Takes::nothing, kAlwaysTracked},
    {"--router-prefill-load-model", Takes::one, kLearnedTimes},
    {"--router-queue-threshold", Takes::one, kBusy},
    {"--router-queue-policy", Takes::one, "the queue is ordered by priority, then round robin over tenants"},
    {"--router-policy-config", Takes::one, "octavo pick --config-file reads pipelines of plugins", true},
    {"--active-decode-blocks-threshold", Takes::one, kBusy},
    {"--active-prefill-tokens-threshold", Takes::one, kBusy},
    {"--active-prefill-tokens-threshold-frac", Takes::one, kBusy},
    {"--admission-control", Takes::one, kBusy},
    {"--router-min-initial-workers", Takes::one, "--queue-size keeps requests until a worker is available"},
    {"--router-conditional-disagg,--no-router-conditional-disagg", Takes::nothing,
     "use --max-local-prefill-length"},
    {"--router-conditional-disagg-config", Takes::one, "use --max-local-prefill-length"},
    {"--router-prefill-policy", Takes::one, "use --prefill-policy"},
    {"--router-decode-policy", Takes::one, "use --decode-policy"},
    {"--migration-max-seq-len", Takes::one, "streams of any length continue on another worker"},
    {"--kserve-grpc-server", Takes::nothing, "clients use HTTP", true},
    {"--grpc-metrics-port", Takes::one, "GET /metrics uses --port"},
    {"--request-plane", Takes::one, kPlanes},
    {"--event-plane", Takes::one, kPlanes},
    {"--enable-anthropic-api,--no-enable-anthropic-api", Takes::nothing, "/v1/messages always works"},
    {"--dyn-chat-processor", Takes::one, kEngineParses},
    {"--dyn-preprocess-workers", Takes::one, kTokenizes},
    {"--tokenizer", Takes::one, "use --tokenizer-path FOLDER"},
    {"--trust-remote-code,--no-trust-remote-code", Takes::nothing, "no code of a model runs"},
    {"--metrics-prefix", Takes::one, "the names of metrics are fixed"},
};

std::string first_name(const OtherFlag& flag) {
  return std::string(flag.name.substr(0, flag.name.find(',')));
}

// Returns all refused flags that the command line has, so that the user corrects them at once.
std::string refusals(const CLI::App& command) {
  std::string text;
  for (const OtherFlag& flag : kOtherFlags) {
    const std::string name = first_name(flag);
    if (!flag.is_refused || command.get_option(name)->count() == 0) continue;
    text += fmt::format("{}{}: is not supported: {}", text.empty() ? "" : "\n", name, flag.instead);
  }
  return text;
}

}  // namespace

void add_other_router_flags(CLI::App& command) {
  for (const OtherFlag& flag : kOtherFlags) {
    const std::string name(flag.name),
        help = fmt::format("{}: {}", flag.is_refused ? "Refused" : "No effect", flag.instead);
    const auto note = [&flag, &command] {
      if (flag.is_refused) throw CLI::ValidationError(refusals(command));
      log_warning("{} has no effect: {}", first_name(flag), flag.instead);
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
