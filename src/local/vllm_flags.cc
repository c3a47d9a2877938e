#include "local/vllm_flags.h"

#include <algorithm>

namespace octavo {
namespace {

constexpr std::string_view kOtherRanks =
    "engines and ranks of this server do not need it; see docs/guides/parallel.md";
constexpr std::string_view kNoRay =
    "each host starts its own processes: run octavo serve --headless on the other hosts, with --nnodes and "
    "--node-rank for ranks, or with --data-parallel-start-rank for engines";
constexpr std::string_view kUndividedContext = "the server does not divide a context among ranks";
constexpr std::string_view kExperts =
    "the server distributes experts over ranks in only one way; see --enable-expert-parallel and "
    "--enable-eplb";
constexpr std::string_view kNoRecurrent = "each device has only one implementation of recurrent layers";
constexpr std::string_view kTextOnly =
    "the server prepares the images, videos and sounds of requests in only one way";
constexpr std::string_view kNoCompiler = "all kernels are compiled together with the program";
constexpr std::string_view kAccessLog = "only --access-log and --enable-log-requests log requests";
constexpr std::string_view kNoPython = "the server cannot load Python code";
constexpr std::string_view kNoOffload =
    "the GPU reads weights in host memory directly; see --cpu-offload-gb and --n-cpu-moe";
constexpr std::string_view kPooling = "the model's files decide its task and pooling; see --runner";
constexpr std::string_view kNotMeasured = "the server does not have this metric";

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
// A flag that sets a field of a JSON flag.
constexpr VllmFlag means(std::string_view field, std::string_view name) {
  return {.name = name, .shorthand = "", .reason = field, .stands_for = field};
}

using enum Takes;

constexpr VllmFlag kFlags[] = {
    // Server processes
    works("--headless"),
    any("--api-server-count", value, "one process serves all requests, with several threads", "-asc"),
    works("--config"),
    refused("--grpc", nothing, "the server has no gRPC interface"),
    refused("--grpc-port", value, "the server has no gRPC interface"),
    works("--disable-log-stats"),
    any("--aggregate-engine-logging", nothing, "each engine writes a separate log line"),
    any("--fail-on-environ-validation", nothing,
        "the log always names unknown variables; docs/reference/environment.md lists the known ones"),
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
    any("--trust-request-mm-kwargs", nothing, "requests may always have mm_processor_kwargs"),
    works("--default-chat-template-kwargs"),
    only("{}", "--reasoning-effort-map", value, "templates get the reasoning effort from the request"),
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
    any("--enable-server-load-tracking", nothing, "the server always counts requests for /load"),
    works("--enable-force-include-usage"),
    works("--sse-keep-alive-interval"),
    works("--enable-tokenizer-info-endpoint"),
    refused("--enable-log-outputs", nothing, "the server does not log answers"),
    any("--enable-log-deltas", nothing, "the server does not log answers"),
    works("--cohere-is-reasoning-model"),
    any("--cohere-format", value, "the model's chat template decides the format"),
    only("auto|none", "--anthropic-disabled-thinking-effort", value,
         "disabled thinking sets reasoning_effort to none"),
    any("--log-error-stack", nothing, "error messages name their cause and have no stack trace"),
    refused("--tokens-only", nothing, "the server always serves all routes"),
    any("--enable-scale-out", nothing, "the server always serves the /render and /inference routes"),
    works("--fingerprint-mode"),
    works("--fingerprint-value"),
    works("--host"),
    works("--port"),
    any("--data-parallel-supervisor-port", value, kOtherRanks),
    any("--dp-supervisor-probe-interval-s", value, kOtherRanks),
    any("--dp-supervisor-probe-timeout-s", value, kOtherRanks),
    any("--dp-supervisor-probe-failure-threshold", value, kOtherRanks),
    works("--uds"),
    any("--uvicorn-log-level", value, "the server does not use uvicorn; --log-level sets the log level"),
    any("--disable-uvicorn-access-log", nothing, kAccessLog),
    any("--disable-access-log-for-endpoints", value, kAccessLog),
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
    any("--disable-fastapi-docs", nothing, "the server has no /docs, and /openapi.json needs the API key"),
    works("--h11-max-incomplete-event-size"),
    works("--h11-max-header-count"),
    refused("--enable-offline-docs", nothing, "the server has no /docs"),
    any("--enable-flash-late-interaction", nothing, kPooling),

    // Model
    works("--model"),
    works("--runner"),
    works("--convert"),
    works("--tokenizer"),
    only("auto|hf|slow|mistral", "--tokenizer-mode", value,
         "tokenizer.json or tekken.json decides how text becomes tokens"),
    any("--trust-remote-code", nothing, "the server never runs code from a model's files"),
    works("--dtype"),
    works("--seed"),
    refused("--hf-config-path", value, "config.json is read from the model's folder"),
    works("--allowed-local-media-path"),
    works("--allowed-media-domains"),
    works("--revision"),
    any("--code-revision", value, "the server never runs code from a model's files"),
    any("--tokenizer-revision", value, "--tokenizer is a local folder or file, which has no revisions"),
    works("--max-model-len"),
    works("--quantization", "-q"),
    refused("--quantization-config", value, "the checkpoint's files define its quantisation"),
    any("--allow-deprecated-quantization", nothing, "no quantisation method is deprecated"),
    works("--enforce-eager"),
    refused("--enable-return-routed-experts", nothing,
            "the server does not report which experts compute a token"),
    refused("--return-sampling-mask", nothing, "the server cannot return sampling masks"),
    works("--max-logprobs"),
    works("--logprobs-mode"),
    any("--use-fp64-gumbel", nothing, "sampling does not use Gumbel noise"),
    refused("--enable-trace-replay", nothing, "the server cannot replay traces"),
    refused("--disable-sliding-window", nothing,
            "the sliding window is part of the model and cannot be turned off"),
    any("--disable-cascade-attn", nothing, "results have the same bits with and without cascade attention"),
    refused("--skip-tokenizer-init", nothing, "the server needs its tokenizer"),
    works("--enable-prompt-embeds"),
    works("--served-model-name"),
    only("auto|hf|mistral", "--config-format", value,
         "the server finds out whether a folder has a config.json, a params.json or a GGUF file"),
    works("--hf-token"),
    works("--hf-overrides"),
    only("{}", "--model-class-overrides", value, kNoPython),
    works("--pooler-config"),
    works("--generation-config"),
    works("--override-generation-config"),
    works("--enable-sleep-mode"),
    any("--sleep-mode-backend", value, "the server frees memory in only one way"),
    any("--sleep-mode-offload-cudagraph", nothing,
        "sleeping always frees CUDA graphs, because they contain the addresses of the KV cache"),
    any("--sleep-preserve-parameter-names", values, "/sleep keeps or frees all weights together"),
    any("--enable-cumem-allocator", nothing, "the server allocates all memory once, at the start"),
    any("--enable-nccl-comm-suspend", nothing, kOtherRanks),
    only("auto|vllm", "--model-impl", value, kNoPython),
    refused("--logits-processors", values, kNoPython),
    refused("--io-processor-plugin", value, kNoPython),
    any("--renderer-num-workers", value, "always two threads render and tokenise prompts"),

    // Loading
    works("--load-format"),
    works("--download-dir"),
    any("--safetensors-load-strategy", value, "weight files are mapped into memory (mmap)"),
    any("--safetensors-prefetch-num-threads", value, "weight files are mapped into memory (mmap)"),
    any("--safetensors-prefetch-block-size", value, "weight files are mapped into memory (mmap)"),
    any("--model-loader-extra-config", value, "the server has only one loader"),
    any("--ignore-patterns", values, "the server downloads only the files that it needs"),
    any("--use-tqdm-on-load", nothing, "the progress bar appears in a terminal, and never in a log file"),
    any("--pt-load-map-location", value, "weight files are mapped into memory (mmap)"),

    // Attention and recurrent layers
    any("--attention-backend", value, "each device has only one attention backend"),
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
    any("--max-parallel-loading-workers", value, "all threads load the weights together, once"),
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
    any("--prefix-cache-retention-interval", value, "cached blocks stay until their memory is needed"),
    refused("--kv-cache-dtype-skip-layers", values, "all layers have the same KV cache format"),
    refused("--kv-sharing-fast-prefill", nothing, "models with shared KV layers are not supported yet"),
    any("--swa-bounded-replay", nothing, "cached prefixes of sliding-window layers need no replay"),
    any("--mamba-cache-dtype", value, kNoRecurrent),
    any("--mamba-ssm-cache-dtype", value, kNoRecurrent),
    works("--mamba-block-size"),
    any("--prefix-match-unit", value, "only whole blocks of a prefix match"),
    any("--mamba-cache-mode", value, "the mode is always align: states are saved at the end of each chunk"),
    any("--enable-mamba-shared-prefix-checkpoint", nothing,
        "the server always saves a state at the end of a common prefix"),
    any("--replayssm-buffer-len", value, kNoRecurrent),
    any("--use-replayssm", nothing, kNoRecurrent),
    works("--kv-offloading-size"),
    works("--kv-offloading-backend"),

    // Offloading
    any("--offload-backend", value, kNoOffload),
    works("--cpu-offload-gb"),
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
    only("auto", "--lora-dtype", value, "adapters are converted to the number format of the activations"),
    any("--enable-tower-connector-lora", nothing, kTextOnly),
    works("--max-cpu-loras"),
    any("--fully-sharded-loras", nothing, kOtherRanks),
    refused("--lora-target-modules", values, "an adapter changes all layers that its files contain"),
    works("--default-mm-loras"),
    any("--specialize-active-lora", nothing, "a step computes only the adapters that its requests use"),
    any("--enable-mixed-moe-lora-format", nothing,
        "the server reads adapters of experts in all formats of PEFT"),
    any("--enable-moe-shared-loras", nothing, "an adapter has separate matrices for each expert"),
    any("--max-lora-cls-labels", value, "the server refuses adapters of classifiers"),

    // Logs, metrics, traces
    refused("--logging-config", value,
            "only the level and the format of the log can be set: --log-level, --log-format"),
    works("--log-level"),
    refused("--log-config-file", value,
            "only the level and the format of the log can be set: --log-level, --log-format"),
    any("--show-hidden-metrics-for-version", value, "the server hides no metrics"),
    works("--otlp-traces-endpoint"),
    works("--collect-detailed-traces"),
    only("none", "--per-request-spec-decode-metrics", value, "replies do not report draft tokens"),
    works("--kv-cache-metrics"),
    works("--kv-cache-metrics-sample"),
    refused("--custom-histogram-buckets", value, "the histograms have vLLM's default buckets"),
    refused("--cudagraph-metrics", nothing, kNotMeasured),
    any("--enable-layerwise-nvtx-tracing", nothing,
        "profilers such as perf and nsys need no support from the server"),
    works("--enable-mfu-metrics"),
    refused("--enable-logging-iteration-details", nothing, "--log-level debug logs the plan of each step"),
    any("--jit-monitor-mode", value, kNoCompiler),
    any("--jit-monitor-verbose", nothing, kNoCompiler),

    // Scheduling
    works("--max-num-batched-tokens"),
    refused("--max-num-scheduled-tokens", value, "--max-num-batched-tokens limits the tokens of a step"),
    works("--max-num-seqs"),
    refused("--max-num-active-seqs", value, "--max-num-seqs limits the sequences of a step"),
    works("--max-num-queued-reqs"),
    refused("--max-num-queued-tokens", value,
            "--max-num-queued-reqs limits the queue by requests, not by tokens"),
    works("--long-prefill-token-threshold"),
    refused("--long-prefill-token-threshold-adaptive", nothing,
            "--long-prefill-token-threshold is a fixed number"),
    works("--scheduling-policy"),
    works("--enable-chunked-prefill"),
    any("--disable-chunked-mm-input", nothing, kTextOnly),
    refused("--scheduler-cls", value, kNoPython),
    only("true", "--scheduler-reserve-full-isl", nothing,
         "a request waits until the KV cache can hold its whole prompt"),
    works("--watermark"),
    only("1", "--prefill-schedule-interval", value, "every step can contain prompts"),
    works("--disable-hybrid-kv-cache-manager"),
    works("--async-scheduling"),
    works("--stream-interval"),

    // Compilation and kernels
    any("--cudagraph-capture-sizes", values,
        "the server captures CUDA graphs for the batch sizes that occur"),
    any("--max-cudagraph-capture-size", value,
        "the server captures CUDA graphs for the batch sizes that occur"),
    any("--ir-op-priority", value, kNoCompiler),
    any("--enable-flashinfer-autotune", nothing, kNoCompiler),
    any("--moe-backend", value, kExperts),
    any("--linear-backend", value, "each device has only one backend"),
    any("--sparse-indexer-topk-backend", value, "each device has only one backend"),

    // Flags that set a field of a JSON flag
    works("--speculative-config", "-sc"),
    means("--speculative-config.method", "--spec-method"),
    means("--speculative-config.model", "--spec-model"),
    means("--speculative-config.num_speculative_tokens", "--spec-tokens"),
    any("--watchdog-config", value, "if a step hangs, the server logs it and /health returns 503"),
    refused("--watermark-config", value, "the server cannot add watermarks to answers"),
    refused("--diffusion-config", value, "diffusion models are not supported yet", "-dc"),
    works("--kv-transfer-config"),
    works("--kv-events-config"),
    refused("--ec-transfer-config", value, kTextOnly),
    any("--ec-manager-config", value, kTextOnly),
    any("--compilation-config", value, kNoCompiler, "-cc"),
    any("--attention-config", value, "the device has one backend", "-ac"),
    refused("--engram-config", value, "no such models yet"),
    works("--reasoning-config"),
    any("--kernel-config", value, kNoCompiler),
    refused("--monokernel", nothing, "the flag is for AMD's MI355X, which is not supported"),
    only("{}", "--additional-config", value, "the server has no platform plugins"),
    works("--structured-outputs-config"),
    refused("--aux-output-config", value, "the server cannot return auxiliary outputs"),
    works("--profiler-config"),
    any("--optimization-level", value, kNoCompiler, "-O"),
    any("--performance-mode", value, "the server has only one performance mode"),
    refused("--weight-transfer-config", value,
            "new weights come through /update_weights or /update_weights_from_disk, without NCCL; see "
            "--server-dev-mode"),

    // Flags of earlier versions that many scripts still use
    any("--disable-log-requests", nothing, "requests are logged only with --enable-log-requests"),
    any("--swap-space", value,
        "a preempted request computes its tokens again, except those in the prefix cache"),
    any("--use-v2-block-manager", nothing, "the server has only one block manager"),
    only("1", "--num-scheduler-steps", value, "the server schedules every step"),
    any("--preemption-mode", value,
        "a preempted request computes its tokens again, except those in the prefix cache"),
    any("--max-seq-len-to-capture", value, "the server captures CUDA graphs for the batch sizes that occur"),
    any("--guided-decoding-backend", value, "the server has only one grammar engine"),
    any("--guided-decoding-disable-fallback", nothing, "the server has only one grammar engine"),
    any("--enable-reasoning", nothing, "--reasoning-parser is sufficient"),
    any("--disable-frontend-multiprocessing", nothing, kOtherRanks),
    any("--max-num-partial-prefills", value, "--max-num-batched-tokens already limits the prompts in a step"),
    any("--max-long-partial-prefills", value,
        "--max-num-batched-tokens already limits the prompts in a step"),
    any("--cuda-graph-sizes", values, "the server captures CUDA graphs for the batch sizes that occur"),
    any("--disable-mm-preprocessor-cache", nothing, kTextOnly),
    any("--multi-step-stream-outputs", nothing, "the server sends each token as soon as it is known"),
    only("auto|generate", "--task", value, kPooling),
    any("--num-lookahead-slots", value, "slots for draft tokens are allocated automatically"),
    any("--worker-use-ray", nothing, kNoRay),
    any("--engine-use-ray", nothing, kNoRay),
    means("--hf-overrides.rope_scaling", "--rope-scaling"),
    means("--hf-overrides.rope_theta", "--rope-theta"),
};

// "1.0" matches "1". "None" and "null" match everything, because they mean that no value is given.
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
