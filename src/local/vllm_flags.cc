#include "local/vllm_flags.h"

#include <algorithm>

namespace octavo {
namespace {

// Reasons that several flags share.
constexpr std::string_view kOtherRanks = "engines and ranks do not need it; see docs/guides/parallel.md";
constexpr std::string_view kNoRay =
    "each host starts its processes itself; other hosts run octavo serve --headless, with --nnodes and "
    "--node-rank for ranks, with --data-parallel-start-rank for engines";
constexpr std::string_view kUndividedContext = "a context is not divided among ranks";
constexpr std::string_view kExperts =
    "there is one way to distribute experts over ranks; see --enable-expert-parallel and --enable-eplb";
constexpr std::string_view kNoRecurrent = "each device has one implementation of recurrent layers";
constexpr std::string_view kTextOnly =
    "images, videos and sound come in requests and are prepared one by one";
constexpr std::string_view kNoCompiler = "kernels are compiled with the program";
constexpr std::string_view kNoPython = "the server cannot load Python code";
constexpr std::string_view kNoOffload = "weights stay on the device that computes";
constexpr std::string_view kPooling = "the model's files define its task and pooling; see --runner";
constexpr std::string_view kNotMeasured = "no such metric";

constexpr VllmFlag works(std::string_view name, std::string_view shorthand = "") {
  return {.name = name, .shorthand = shorthand, .works = true};
}
constexpr VllmFlag any(std::string_view name, Takes takes, std::string_view reason,
                       std::string_view shorthand = "") {
  return {.name = name, .shorthand = shorthand, .takes = takes, .harmless = "*", .reason = reason};
}
constexpr VllmFlag only(std::string_view harmless, std::string_view name, Takes takes,
                        std::string_view reason, std::string_view shorthand = "") {
  return {.name = name, .shorthand = shorthand, .takes = takes, .harmless = harmless, .reason = reason};
}
constexpr VllmFlag refused(std::string_view name, Takes takes, std::string_view reason,
                           std::string_view shorthand = "") {
  return {.name = name,
          .shorthand = shorthand,
          .takes = takes,
          .harmless = takes == Takes::nothing ? "false" : "",
          .reason = reason};
}
// Returns a flag that sets a field of a JSON flag.
constexpr VllmFlag means(std::string_view field, std::string_view name) {
  return {.name = name, .shorthand = "", .reason = field, .stands_for = field};
}

using enum Takes;

constexpr VllmFlag kFlags[] = {
    // Server processes
    works("--headless"),
    any("--api-server-count", value, "one process answers, on several threads", "-asc"),
    works("--config"),
    refused("--grpc", nothing, "HTTP is the only protocol"),
    refused("--grpc-port", value, "HTTP is the only protocol"),
    works("--disable-log-stats"),
    any("--aggregate-engine-logging", nothing, "each engine has a separate line"),
    any("--fail-on-environ-validation", nothing,
        "the log names unknown variables: docs/reference/environment.md"),
    works("--shutdown-timeout"),
    any("--gdn-prefill-backend", value, kNoRecurrent),
    any("--kda-prefill-backend", value, kNoRecurrent),
    any("--kda-decode-backend", value, kNoRecurrent),
    works("--enable-log-requests"),

    // Front end
    works("--lora-modules"),
    works("--chat-template"),
    works("--chat-template-content-format"),
    works("--trust-request-chat-template"),
    refused("--trust-request-mm-kwargs", nothing, kTextOnly),
    works("--default-chat-template-kwargs"),
    only("{}", "--reasoning-effort-map", value, "templates get the reasoning effort of the request"),
    works("--response-role"),
    works("--return-tokens-as-token-ids"),
    works("--enable-auto-tool-choice"),
    works("--exclude-tools-when-tool-choice-none"),
    works("--tool-call-parser"),
    refused("--tool-parser-plugin", value, kNoPython),
    only("auto", "--tool-strict-level", value, "each request sets `strict` for its tools"),
    refused(
        "--tool-server", value,
        "tools run on MCP servers that a request to /v1/responses names: allow their hosts with --mcp-allow"),
    works("--max-log-len"),
    works("--enable-prompt-tokens-details"),
    works("--enable-per-request-metrics"),
    any("--enable-server-load-tracking", nothing, "/load always counts"),
    works("--enable-force-include-usage"),
    works("--sse-keep-alive-interval"),
    works("--enable-tokenizer-info-endpoint"),
    refused("--enable-log-outputs", nothing, "answers are not logged"),
    any("--enable-log-deltas", nothing, "answers are not logged"),
    any("--cohere-is-reasoning-model", nothing, "there is no /cohere route"),
    any("--cohere-format", value, "there is no /cohere route"),
    only("auto|none", "--anthropic-disabled-thinking-effort", value,
         "disabled thinking means reasoning_effort none"),
    any("--log-error-stack", nothing, "errors name their cause, there are no stacks"),
    refused("--tokens-only", nothing, "all routes are served"),
    any("--enable-scale-out", nothing, "/render and /inference routes are always served"),
    works("--fingerprint-mode"),
    works("--fingerprint-value"),
    works("--host"),
    works("--port"),
    any("--data-parallel-supervisor-port", value, kOtherRanks),
    any("--dp-supervisor-probe-interval-s", value, kOtherRanks),
    any("--dp-supervisor-probe-timeout-s", value, kOtherRanks),
    any("--dp-supervisor-probe-failure-threshold", value, kOtherRanks),
    works("--uds"),
    any("--uvicorn-log-level", value, "there is no uvicorn; --log-level sets the level"),
    any("--disable-uvicorn-access-log", nothing, "there is no access log"),
    any("--disable-access-log-for-endpoints", value, "there is no access log"),
    works("--allow-credentials"),
    works("--allowed-origins"),
    works("--allowed-methods"),
    works("--allowed-headers"),
    works("--api-key"),
    works("--ssl-keyfile"),
    works("--ssl-certfile"),
    works("--ssl-ca-certs"),
    works("--enable-ssl-refresh"),
    works("--ssl-cert-reqs"),
    works("--ssl-ciphers"),
    works("--root-path"),
    refused("--middleware", value, kNoPython),
    works("--enable-request-id-headers"),
    any("--disable-fastapi-docs", nothing, "there is no /docs; /openapi.json asks for the key"),
    works("--h11-max-incomplete-event-size"),
    works("--h11-max-header-count"),
    refused("--enable-offline-docs", nothing, "there is no /docs"),
    any("--enable-flash-late-interaction", nothing, kPooling),

    // Model
    works("--model"),
    works("--runner"),
    works("--convert"),
    works("--tokenizer"),
    only("auto|hf|slow", "--tokenizer-mode", value, "tokenizer.json says how text becomes tokens"),
    any("--trust-remote-code", nothing, "no code of a model is ever run"),
    works("--dtype"),
    works("--seed"),
    refused("--hf-config-path", value, "config.json is read from the model's folder"),
    works("--allowed-local-media-path"),
    works("--allowed-media-domains"),
    works("--revision"),
    any("--code-revision", value, "no code of a model is ever run"),
    any("--tokenizer-revision", value, "--tokenizer is a folder or file, which has no revisions"),
    works("--max-model-len"),
    works("--quantization", "-q"),
    refused("--quantization-config", value, "the checkpoint says how it is quantised"),
    any("--allow-deprecated-quantization", nothing, "no method is deprecated"),
    works("--enforce-eager"),
    refused("--enable-return-routed-experts", nothing, kExperts),
    refused("--return-sampling-mask", nothing, "replies do not contain it"),
    works("--max-logprobs"),
    works("--logprobs-mode"),
    any("--use-fp64-gumbel", nothing, "draws do not use Gumbel noise"),
    refused("--enable-trace-replay", nothing, "traces are not replayed"),
    refused("--disable-sliding-window", nothing, "a model computes with its windows"),
    any("--disable-cascade-attn", nothing, "there is no cascade attention"),
    refused("--skip-tokenizer-init", nothing, "the server needs its tokenizer"),
    works("--enable-prompt-embeds"),
    works("--served-model-name"),
    only("auto|hf", "--config-format", value, "config.json or GGUF, as found"),
    works("--hf-token"),
    works("--hf-overrides"),
    only("{}", "--model-class-overrides", value, kNoPython),
    works("--pooler-config"),
    works("--generation-config"),
    works("--override-generation-config"),
    works("--enable-sleep-mode"),
    any("--sleep-mode-backend", value, "there is one way to free memory"),
    any("--sleep-mode-offload-cudagraph", nothing, "devices other than cpu do not sleep yet"),
    any("--sleep-preserve-parameter-names", values, "weights are kept or dropped as a whole"),
    any("--enable-cumem-allocator", nothing, "all memory is taken once, at the start"),
    any("--enable-nccl-comm-suspend", nothing, kOtherRanks),
    only("auto|vllm", "--model-impl", value, kNoPython),
    refused("--logits-processors", values, kNoPython),
    refused("--io-processor-plugin", value, kNoPython),
    any("--renderer-num-workers", value, "two threads render and tokenise prompts"),

    // Loading
    works("--load-format"),
    works("--download-dir"),
    any("--safetensors-load-strategy", value, "files are mapped"),
    any("--safetensors-prefetch-num-threads", value, "files are mapped"),
    any("--safetensors-prefetch-block-size", value, "files are mapped"),
    only("{}", "--model-loader-extra-config", value, "there is one loader"),
    any("--ignore-patterns", values, "only what a model needs is downloaded"),
    any("--use-tqdm-on-load", nothing, "a terminal gets a progress bar, a log file none"),
    any("--pt-load-map-location", value, "files are mapped"),

    // Attention and recurrent layers
    any("--attention-backend", value, "the device has one backend"),
    any("--mamba-backend", value, kNoRecurrent),
    any("--mamba-ssu-algorithm", value, kNoRecurrent),
    any("--enable-mamba-cache-stochastic-rounding", nothing, kNoRecurrent),
    any("--mamba-cache-philox-rounds", value, kNoRecurrent),

    // Reasoning
    works("--reasoning-parser"),
    refused("--reasoning-parser-plugin", value, kNoPython),

    // Several devices and processes
    only("uni|mp|external_launcher", "--distributed-executor-backend", value, kNoRay),
    works("--pipeline-parallel-size", "-pp"),
    works("--master-addr"),
    works("--master-port"),
    works("--nnodes", "-n"),
    works("--node-rank", "-r"),
    works("--distributed-timeout-seconds"),
    any("--cpu-distributed-timeout-seconds", value, kOtherRanks),
    works("--numa-bind"),
    works("--numa-bind-nodes"),
    works("--numa-bind-cpus"),
    only("0", "--device-ids", value, "CUDA_VISIBLE_DEVICES chooses the device"),
    works("--tensor-parallel-size", "-tp"),
    only("1", "--decode-context-parallel-size", value, kUndividedContext, "-dcp"),
    any("--dcp-comm-backend", value, kUndividedContext),
    any("--dcp-q-replicate", nothing, kUndividedContext),
    any("--dcp-kv-cache-interleave-size", value, kUndividedContext),
    any("--cp-kv-cache-interleave-size", value, kUndividedContext),
    only("1", "--prefill-context-parallel-size", value, kUndividedContext, "-pcp"),
    works("--data-parallel-size", "-dp"),
    works("--data-parallel-rank", "-dpn"),
    works("--data-parallel-start-rank", "-dpr"),
    works("--data-parallel-size-local", "-dpl"),
    works("--data-parallel-address", "-dpa"),
    works("--data-parallel-rpc-port", "-dpp"),
    only("mp", "--data-parallel-backend", value, kNoRay, "-dpb"),
    works("--data-parallel-hybrid-lb", "-dph"),
    works("--data-parallel-external-lb", "-dpe"),
    refused("--data-parallel-multi-port-external-lb", nothing, kOtherRanks, "-dpm"),
    any("--enable-hc-sp", nothing, kOtherRanks),
    works("--enable-expert-parallel", "-ep"),
    any("--enable-batch-sharded-sampling", nothing, kOtherRanks),
    any("--enable-ep-weight-filter", nothing, kExperts),
    any("--all2all-backend", value, kExperts),
    any("--enable-dbo", nothing, kOtherRanks),
    any("--enable-shm-tensor-arena", nothing, kOtherRanks),
    any("--ubatch-size", value, kOtherRanks),
    works("--enable-elastic-ep"),
    works("--elastic-ep-max-dp-size"),
    any("--dbo-decode-token-threshold", value, kOtherRanks),
    any("--dp-sync-interval", value, kOtherRanks),
    any("--dbo-prefill-token-threshold", value, kOtherRanks),
    any("--disable-nccl-for-dp-synchronization", nothing, kOtherRanks),
    works("--enable-eplb"),
    works("--eplb-config"),
    any("--expert-placement-strategy", value, kExperts),
    any("--max-parallel-loading-workers", value, "weights are loaded once, by all threads"),
    any("--ray-workers-use-nsight", nothing, kOtherRanks),
    any("--disable-custom-all-reduce", nothing, kOtherRanks),
    only("auto", "--worker-cls", value, kNoPython),
    only("", "--worker-extension-cls", value, kNoPython),
    refused("--enable-fault-tolerance", nothing, kOtherRanks),
    any("--fault-tolerance-config", value, kOtherRanks),

    // KV cache
    works("--block-size"),
    works("--gpu-memory-utilization"),
    works("--device-memory-utilization"),
    works("--kv-cache-memory-bytes"),
    works("--kv-cache-dtype"),
    works("--num-gpu-blocks-override"),
    works("--enable-prefix-caching"),
    works("--prefix-caching-hash-algo"),
    any("--prefix-cache-retention-interval", value, "blocks are kept until their memory is needed"),
    refused("--kv-cache-dtype-skip-layers", values, "all layers have one cache format"),
    refused("--kv-sharing-fast-prefill", nothing, "no such models yet"),
    any("--swa-bounded-replay", nothing, "prefixes of windowed layers need no replay"),
    any("--mamba-cache-dtype", value, kNoRecurrent),
    any("--mamba-ssm-cache-dtype", value, kNoRecurrent),
    works("--mamba-block-size"),
    any("--prefix-match-unit", value, "prefixes match by whole blocks"),
    any("--mamba-cache-mode", value, "always align: states are kept at the ends of chunks"),
    any("--enable-mamba-shared-prefix-checkpoint", nothing,
        "a state is always kept at the end of a common prefix"),
    any("--replayssm-buffer-len", value, kNoRecurrent),
    any("--use-replayssm", nothing, kNoRecurrent),
    works("--kv-offloading-size"),
    works("--kv-offloading-backend"),

    // Offloading
    any("--offload-backend", value, kNoOffload),
    only("0", "--cpu-offload-gb", value, kNoOffload),
    any("--cpu-offload-params", values, kNoOffload),
    only("0", "--offload-group-size", value, kNoOffload),
    any("--offload-num-in-group", value, kNoOffload),
    any("--offload-prefetch-step", value, kNoOffload),
    any("--offload-params", values, kNoOffload),

    // Images, sound, video
    works("--language-model-only"),
    works("--limit-mm-per-prompt"),
    refused("--enable-mm-embeds", nothing, kTextOnly),
    works("--media-io-kwargs"),
    works("--mm-processor-kwargs"),
    any("--mm-processor-cache-gb", value, kTextOnly),
    any("--mm-processor-cache-type", value, kTextOnly),
    any("--mm-hasher-algorithm", value, kTextOnly),
    any("--mm-shm-cache-max-object-size-mb", value, kTextOnly),
    refused("--mm-encoder-only", nothing, kTextOnly),
    any("--mm-encoder-tp-mode", value, kTextOnly),
    any("--mm-encoder-attn-backend", value, kTextOnly),
    any("--mm-encoder-attn-dtype", value, kTextOnly),
    any("--mm-encoder-fp8-scale-path", value, kTextOnly),
    any("--mm-encoder-fp8-scale-save-path", value, kTextOnly),
    any("--mm-encoder-fp8-scale-save-margin", value, kTextOnly),
    any("--interleave-mm-strings", nothing, kTextOnly),
    any("--skip-mm-profiling", nothing, kTextOnly),
    any("--video-pruning-rate", value, kTextOnly),
    any("--video-pruning-method", value, kTextOnly),
    any("--mm-tensor-ipc", value, kTextOnly),
    any("--mm-processor-device", value, kTextOnly),
    any("--mm-ipc-gpu-memory-gb", value, kTextOnly),
    any("--mm-device-do-normalize", nothing, kTextOnly),

    // LoRA
    works("--enable-lora"),
    works("--max-loras"),
    works("--max-lora-rank"),
    only("auto", "--lora-dtype", value, "adapters are in the format of the activations"),
    any("--enable-tower-connector-lora", nothing, kTextOnly),
    works("--max-cpu-loras"),
    any("--fully-sharded-loras", nothing, kOtherRanks),
    refused("--lora-target-modules", values, "adapters change all the layers that their files hold"),
    works("--default-mm-loras"),
    any("--specialize-active-lora", nothing, "the cost of a step depends only on the adapters in it"),
    any("--enable-mixed-moe-lora-format", nothing, "adapters of experts are read in any of PEFT's forms"),
    any("--enable-moe-shared-loras", nothing, "adapters have matrices for each expert"),
    any("--max-lora-cls-labels", value, "adapters of classifiers are refused"),

    // Logs, metrics, traces
    refused("--logging-config", value, "only --log-level can be chosen"),
    works("--log-level"),
    refused("--log-config-file", value, "only --log-level can be chosen"),
    any("--show-hidden-metrics-for-version", value, "no metric is hidden"),
    works("--otlp-traces-endpoint"),
    works("--collect-detailed-traces"),
    only("none", "--per-request-spec-decode-metrics", value, "replies do not report draft tokens"),
    works("--kv-cache-metrics"),
    works("--kv-cache-metrics-sample"),
    refused("--custom-histogram-buckets", value, "buckets are vLLM's own"),
    refused("--cudagraph-metrics", nothing, kNotMeasured),
    any("--enable-layerwise-nvtx-tracing", nothing, "perf and nsys work from outside"),
    works("--enable-mfu-metrics"),
    refused("--enable-logging-iteration-details", nothing, "--log-level debug logs the plan of each step"),
    any("--jit-monitor-mode", value, kNoCompiler),
    any("--jit-monitor-verbose", nothing, kNoCompiler),

    // Scheduling
    works("--max-num-batched-tokens"),
    refused("--max-num-scheduled-tokens", value, "--max-num-batched-tokens is the budget of a step"),
    works("--max-num-seqs"),
    refused("--max-num-active-seqs", value, "--max-num-seqs is the limit"),
    works("--max-num-queued-reqs"),
    refused("--max-num-queued-tokens", value, "--max-num-queued-reqs is the limit"),
    works("--long-prefill-token-threshold"),
    refused("--long-prefill-token-threshold-adaptive", nothing, "--long-prefill-token-threshold is fixed"),
    works("--scheduling-policy"),
    works("--enable-chunked-prefill"),
    any("--disable-chunked-mm-input", nothing, kTextOnly),
    refused("--scheduler-cls", value, kNoPython),
    only("true", "--scheduler-reserve-full-isl", nothing, "a request waits until all of its prompt fits"),
    works("--watermark"),
    only("1", "--prefill-schedule-interval", value, "each step may hold prompts"),
    works("--disable-hybrid-kv-cache-manager"),
    works("--async-scheduling"),
    works("--stream-interval"),

    // Compilation and kernels
    any("--cudagraph-capture-sizes", values, "CUDA graphs are recorded for the batch sizes that occur"),
    any("--max-cudagraph-capture-size", value, "CUDA graphs are recorded for the batch sizes that occur"),
    any("--ir-op-priority", value, kNoCompiler),
    any("--enable-flashinfer-autotune", nothing, kNoCompiler),
    any("--moe-backend", value, kExperts),
    any("--linear-backend", value, "the device has one backend"),
    any("--sparse-indexer-topk-backend", value, "there is one backend"),

    // Flags that set a field of a JSON flag
    works("--speculative-config", "-sc"),
    means("--speculative-config.method", "--spec-method"),
    means("--speculative-config.model", "--spec-model"),
    means("--speculative-config.num_speculative_tokens", "--spec-tokens"),
    any("--watchdog-config", value, "a step that hangs is logged, and /health answers 503"),
    refused("--watermark-config", value, "answers carry no watermark"),
    refused("--diffusion-config", value, "no diffusion models yet", "-dc"),
    works("--kv-transfer-config"),
    works("--kv-events-config"),
    refused("--ec-transfer-config", value, kTextOnly),
    any("--ec-manager-config", value, kTextOnly),
    any("--compilation-config", value, kNoCompiler, "-cc"),
    any("--attention-config", value, "the device has one backend", "-ac"),
    refused("--engram-config", value, "no such models yet"),
    works("--reasoning-config"),
    any("--kernel-config", value, kNoCompiler),
    refused("--monokernel", nothing, "it is for AMD's MI355X"),
    only("{}", "--additional-config", value, "there are no platform plugins"),
    works("--structured-outputs-config"),
    refused("--aux-output-config", value, "replies do not contain it"),
    works("--profiler-config"),
    any("--optimization-level", value, kNoCompiler, "-O"),
    any("--performance-mode", value, "there is one mode"),
    refused("--weight-transfer-config", value, "weights do not change while the server runs"),

    // Flags of earlier versions, which many scripts still use
    any("--disable-log-requests", nothing, "requests are logged only with --enable-log-requests"),
    any("--swap-space", value, "preempted requests are computed again, from the prefix cache"),
    any("--use-v2-block-manager", nothing, "there is one block manager"),
    only("1", "--num-scheduler-steps", value, "each step is scheduled"),
    any("--preemption-mode", value, "preempted requests are computed again, from the prefix cache"),
    any("--max-seq-len-to-capture", value, "CUDA graphs are recorded for the batch sizes that occur"),
    any("--guided-decoding-backend", value, "there is one grammar engine"),
    any("--guided-decoding-disable-fallback", nothing, "there is one grammar engine"),
    any("--enable-reasoning", nothing, "--reasoning-parser is enough"),
    any("--disable-frontend-multiprocessing", nothing, kOtherRanks),
    any("--max-num-partial-prefills", value, "the budget of a step bounds its prompts"),
    any("--max-long-partial-prefills", value, "the budget of a step bounds its prompts"),
    any("--cuda-graph-sizes", values, "CUDA graphs are recorded for the batch sizes that occur"),
    any("--disable-mm-preprocessor-cache", nothing, kTextOnly),
    any("--multi-step-stream-outputs", nothing, "each token is sent when it is known"),
    only("auto|generate", "--task", value, kPooling),
    any("--num-lookahead-slots", value, "slots for draft tokens are allocated automatically"),
    any("--worker-use-ray", nothing, kNoRay),
    any("--engine-use-ray", nothing, kNoRay),
    means("--hf-overrides.rope_scaling", "--rope-scaling"),
    means("--hf-overrides.rope_theta", "--rope-theta"),
};

// Compares values as JSON and Python print them: "1.0" equals "1", and "None" equals no value.
bool matches(std::string_view harmless, std::string_view value) {
  if (value == "None" || value == "null") return true;
  if (value.ends_with(".0")) value.remove_suffix(2);
  while (true) {
    const std::size_t bar = harmless.find('|');
    if (harmless.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    harmless.remove_prefix(bar + 1);
  }
}

}  // namespace

std::span<const VllmFlag> vllm_flags() { return kFlags; }

const VllmFlag* find_vllm_flag(std::string_view name) {
  const auto found = std::ranges::find_if(kFlags, [&](const VllmFlag& flag) {
    return flag.name == name || (!flag.shorthand.empty() && flag.shorthand == name);
  });
  return found == std::end(kFlags) ? nullptr : found;
}

Result<> check_harmless(const VllmFlag& flag, std::string_view value) {
  if (flag.harmless == "*" || matches(flag.harmless, value)) return {};
  if (flag.harmless == "true")
    return field_failure(flag.name, ErrorCode::unsupported, "cannot be turned off: {}", flag.reason);
  if (flag.harmless.empty() || flag.takes == Takes::nothing)
    return field_failure(flag.name, ErrorCode::unsupported, "is not supported: {}", flag.reason);
  return field_failure(flag.name, ErrorCode::unsupported, "{} is not supported, only {}: {}", value,
                       flag.harmless, flag.reason);
}

}  // namespace octavo
