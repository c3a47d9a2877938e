// Reads the load of an engine from its /metrics page (Prometheus text format).
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
  cache_config,  // info metric with sizes as labels
  block_size,
  num_blocks,
  prompt_tokens,  // counter
  adapters,       // vLLM's info metric of LoRA adapters
  custom,         // attribute of the endpoint
};

struct EngineMetric {
  Figure figure = Figure::custom;
  MetricSpec metric = {};
  std::string block_size_label = "block_size";  // for cache_config: label with the block size
  std::string num_blocks_label = "num_gpu_blocks";
  AttributeKey attribute = {};  // for custom: attribute that gets the value
};
using EngineMetrics = std::vector<EngineMetric>;

// The metrics of each engine type, and the endpoint label that contains the type.
struct EngineKinds {
  EngineKinds();  // llm-d's types: vllm, sglang, trtllm-serve, triton-tensorrt-llm, triton

  std::string label = "llm-d.ai/engine-type";
  std::string unlabelled = {};  // type of endpoints without the label; "": use `any`
  std::map<std::string, EngineMetrics, std::less<>> kinds;
  // metrics of all llm-d's types except triton, whose metric names have other meanings in other engines
  EngineMetrics any;

  const EngineMetrics& of(const Endpoint& endpoint) const;
};

const EngineKinds& known_engines();

// Reads a page into these fields of `state`: waiting, running, kv_usage, block_size, num_blocks,
// prompt_tokens, started_s, adapters, attributes. Fields without a metric on the page do not change. Adds
// series of the same name, except kv_usage (maximum) and custom metrics (first series). Skips invalid lines.
// rank: reads only series with this label `engine`; empty: reads all series. Returns false if the page has
// none of the metrics.
bool read_engine_metrics(std::string_view page, EndpointState& state,
                         const EngineMetrics& metrics = known_engines().any, std::optional<int> rank = {});

inline constexpr int kRanksMax = 64;  // maximum number of ranks of a server

struct EnginePage {
  std::optional<EndpointState> state = {};  // new state of the member; nullopt: the page has no known metric
  int ranks = 1;  // number of data-parallel ranks on the page (label `engine`), at most kRanksMax
};

// Reads the page of a member at now_us. If ranks share the member's port, reads only the series of its rank.
EnginePage read_engine_page(const Member& member, std::string_view page, const EngineMetrics& metrics,
                            std::int64_t now_us);

}  // namespace octavo::fleet
