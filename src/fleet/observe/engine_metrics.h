// Reads the load of an engine from its /metrics page (Prometheus text format). Knows the metric names of
// several engines.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/observe/metric_spec.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

enum class Figure : std::uint8_t {
  waiting,
  running,
  kv_usage,
  cache_config,  // info metric whose labels contain block_size and num_blocks
  block_size,
  num_blocks,
  prompt_tokens,  // counter
  adapters,       // vLLM's info metric with the LoRA adapters as labels
  custom,
};

struct EngineMetric {
  Figure figure = Figure::custom;
  MetricSpec metric = {};
  std::string block_size_label = "block_size";  // used by cache_config: label with the block size
  std::string num_blocks_label = "num_gpu_blocks";
  AttributeKey attribute = {};  // used by custom: attribute that gets the value
};
using EngineMetrics = std::vector<EngineMetric>;

// The metrics of each engine type. `label` is the label of an endpoint that contains its engine type.
struct EngineKinds {
  EngineKinds();  // Adds llm-d's types: vllm, sglang, trtllm-serve, triton-tensorrt-llm and triton.

  std::string label = "llm-d.ai/engine-type";
  std::string unlabelled = {};  // engine type of endpoints without the label; "": use `any`
  std::map<std::string, EngineMetrics, std::less<>> kinds;
  // Used for unknown engine types: the metrics of all of llm-d's types except triton, because other engines
  // use triton's metric names with a different meaning.
  EngineMetrics any;

  const EngineMetrics& of(const Endpoint& endpoint) const;
};

const EngineKinds& known_engines();

// Reads a page into `state`: waiting, running, kv_usage, block_size, num_blocks, prompt_tokens, started_s,
// adapters and attributes. A field without a metric on the page does not change. If a metric has several
// series, the sum is used, except for kv_usage (maximum) and custom metrics (first series). Invalid lines
// are skipped. If `rank` is set, only series whose label `engine` equals `rank` are read. Returns false if
// the page has none of the metrics.
bool read_engine_metrics(std::string_view page, EndpointState& state,
                         const EngineMetrics& metrics = known_engines().any, std::optional<int> rank = {});

// Names of all metrics that the functions of this file read from a page, each once.
std::vector<std::string> metric_names(const EngineMetrics& metrics);

inline constexpr int kRanksMax = 64;  // maximum number of data-parallel ranks of one server

struct EnginePage {
  // new state of the member; nullopt: the page has no known metric
  std::optional<EndpointState> state = {};
  int ranks = 1;  // data-parallel ranks on the page (values of the label `engine`), at most kRanksMax
};

// Reads the page of a member at the time now_us. If several ranks share the member's port, reads only the
// series of the member's rank.
EnginePage read_engine_page(const Member& member, std::string_view page, const EngineMetrics& metrics,
                            std::int64_t now_us);

}  // namespace octavo::fleet
