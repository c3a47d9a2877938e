#include "fleet/observe/engine_metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

namespace octavo::fleet {
namespace {

struct Row {
  std::string_view engine;
  Figure figure;
  std::string_view name, label = {}, value = {};
  std::string_view block_size_label = "block_size", num_blocks_label = "num_gpu_blocks";
};

// the process's start time; all Prometheus client libraries export it under this name
constexpr std::string_view kStarted = "process_start_time_seconds";
// label in SGLang's router, whose page has the series of all workers
constexpr std::string_view kWorkerOfRouter = "worker_addr";
constexpr std::string_view kRunning = "vllm:num_requests_running";
constexpr std::string_view kTriton = "triton";
constexpr std::string_view kTritonLlm = "triton-tensorrt-llm";
constexpr std::string_view kTritonRequests = "nv_trt_llm_request_metrics";
constexpr std::string_view kTritonBlocks = "nv_trt_llm_kv_cache_block_metrics";
constexpr std::string_view kOldLabel = "inference.networking.k8s.io/engine-type";

constexpr Row kRows[] = {
    {"vllm", Figure::waiting, "vllm:num_requests_waiting"},
    {"vllm", Figure::running, "vllm:num_requests_running"},
    {"vllm", Figure::kv_usage, "vllm:kv_cache_usage_perc"},
    {"vllm", Figure::kv_usage, "vllm:gpu_cache_usage_perc"},  // name before vLLM 0.10
    {"vllm", Figure::cache_config, "vllm:cache_config_info"},
    {"vllm", Figure::prompt_tokens, "vllm:prompt_tokens_total"},
    {"vllm", Figure::adapters, "vllm:lora_requests_info"},
    {"sglang", Figure::waiting, "sglang:num_queue_reqs"},
    {"sglang", Figure::running, "sglang:num_running_reqs"},
    {"sglang", Figure::kv_usage, "sglang:token_usage"},
    {"sglang", Figure::prompt_tokens, "sglang:prompt_tokens_total"},
    {"sglang", Figure::cache_config, "sglang:cache_config_info", "", "", "page_size", "num_pages"},
    {"trtllm-serve", Figure::waiting, "trtllm_num_requests_waiting"},
    {"trtllm-serve", Figure::running, "trtllm_num_requests_running"},
    {"trtllm-serve", Figure::kv_usage, "trtllm_kv_cache_utilization"},
    {"trtllm-serve", Figure::block_size, "trtllm_kv_cache_tokens_per_block"},
    {"trtllm-serve", Figure::num_blocks, "trtllm_kv_cache_max_blocks"},
    {kTritonLlm, Figure::waiting, kTritonRequests, "request_type", "waiting"},
    {kTritonLlm, Figure::running, kTritonRequests, "request_type", "scheduled"},
    {kTritonLlm, Figure::kv_usage, kTritonBlocks, "kv_cache_block_type", "fraction"},
    {kTritonLlm, Figure::block_size, kTritonBlocks, "kv_cache_block_type", "tokens_per"},
    {kTritonLlm, Figure::num_blocks, kTritonBlocks, "kv_cache_block_type", "max"},
    {kTriton, Figure::waiting, "nv_inference_pending_request_count"},
    {kTriton, Figure::running, "nv_inference_exec_count"},
};

EngineMetric metric_of(const Row& row) {
  EngineMetric metric{.figure = row.figure,
                      .metric = {.name = std::string(row.name)},
                      .block_size_label = std::string(row.block_size_label),
                      .num_blocks_label = std::string(row.num_blocks_label)};
  if (!row.label.empty()) metric.metric.labels.emplace_back(row.label, row.value);
  return metric;
}

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::max<std::int64_t>(value, 0);
}

std::vector<std::string> list(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, end);
    const std::size_t begin = std::min(item.find_first_not_of(' '), item.size());
    if (begin < item.size()) items.emplace_back(item.substr(begin));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return items;
}

constexpr int kCountMax = 1 << 30;
int count(double value) { return static_cast<int>(std::clamp(value, 0.0, static_cast<double>(kCountMax))); }

class PageReader {
 public:
  explicit PageReader(EndpointState& state) : state_(state) {}

  void read(const EngineMetric& metric, const MetricLine& line) {
    switch (metric.figure) {
      case Figure::waiting:
        waiting_ = std::max(waiting_, 0.0) + line.value;
        break;
      case Figure::running:
        running_ = std::max(running_, 0.0) + line.value;
        break;
      case Figure::kv_usage:
        kv_usage_ = std::max(kv_usage_, line.value);
        break;
      case Figure::block_size:
        state_.block_size = count(line.value);
        break;
      case Figure::num_blocks:
        state_.num_blocks = count(line.value);
        break;
      case Figure::prompt_tokens:
        prompt_tokens_ = std::max(prompt_tokens_, 0.0) + line.value;
        break;
      case Figure::cache_config:
        state_.block_size =
            count(static_cast<double>(number(metric_label(line.labels, metric.block_size_label))));
        state_.num_blocks = number(metric_label(line.labels, metric.num_blocks_label));
        break;
      case Figure::adapters:
        read_adapters(line);
        break;
      case Figure::custom:
        custom_.try_emplace(metric.attribute, std::clamp(line.value, -kAttributeMax, kAttributeMax));
        break;
    }
  }

  void finish() {
    if (waiting_ >= 0) state_.waiting = count(waiting_);
    if (running_ >= 0) state_.running = count(running_);
    if (kv_usage_ >= 0) state_.kv_usage = std::clamp(kv_usage_, 0.0, 1.0);
    if (prompt_tokens_ >= 0) state_.prompt_tokens = prompt_tokens_;
    if (custom_.empty()) return;
    if (state_.attributes) custom_.insert(state_.attributes->begin(), state_.attributes->end());
    state_.attributes = std::make_shared<const Attributes>(std::move(custom_));
  }

 private:
  // The value of vLLM's adapter metric is a time. So the series with the highest value is the current one.
  void read_adapters(const MetricLine& line) {
    if (line.value < adapters_since_) return;
    adapters_since_ = line.value;
    state_.adapters = std::make_shared<const AdapterState>(
        AdapterState{list(metric_label(line.labels, "running_lora_adapters")),
                     list(metric_label(line.labels, "waiting_lora_adapters")),
                     count(static_cast<double>(number(metric_label(line.labels, "max_lora"))))});
  }

  EndpointState& state_;
  double waiting_ = -1, running_ = -1, kv_usage_ = -1, prompt_tokens_ = -1, adapters_since_ = -1;
  Attributes custom_;
};

}  // namespace

EngineKinds::EngineKinds() {
  for (const Row& row : kRows) {
    kinds[std::string(row.engine)].push_back(metric_of(row));
    if (row.engine != kTriton) any.push_back(metric_of(row));
  }
}

const EngineMetrics& EngineKinds::of(const Endpoint& endpoint) const {
  for (const std::string_view key : {std::string_view(label), kOldLabel}) {
    const auto named = endpoint.labels.find(std::string(key));
    if (named == endpoint.labels.end() || named->second.empty()) continue;
    if (const auto kind = kinds.find(named->second); kind != kinds.end()) return kind->second;
    break;
  }
  return unlabelled.empty() ? any : kinds.at(unlabelled);
}

const EngineKinds& known_engines() {
  static const EngineKinds kKnown;
  return kKnown;
}

namespace {

std::optional<int> engine_of(const MetricLine& line) {
  const std::string_view text = metric_label(line.labels, "engine");
  int engine = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), engine);
  return error == std::errc() && end == text.data() + text.size() && engine >= 0 ? std::optional(engine)
                                                                                  : std::nullopt;
}

bool is_of(std::string_view line, std::string_view name) {
  return line.size() > name.size() && (line[name.size()] == '{' || line[name.size()] == ' ') &&
         line.starts_with(name);
}

// Selects the lines of a page that must be parsed: usually a few of about a thousand.
class LineFilter {
 public:
  explicit LineFilter(const EngineMetrics& metrics) : metrics_(metrics) {}

  // Skips lines that have the same name as the last line that was not selected. Metrics such as histograms
  // have many lines with one name.
  bool concerns(std::string_view line) {
    if (line.starts_with('#') || (!other_.empty() && is_of(line, other_))) return false;
    if (is_of(line, kStarted) || is_of(line, kRunning) ||
        std::ranges::any_of(metrics_, [&](const EngineMetric& m) { return is_of(line, m.metric.name); }))
      return true;
    other_ = line.substr(0, line.find_first_of("{ "));
    return false;
  }

 private:
  const EngineMetrics& metrics_;
  std::string_view other_;  // name of the last line that was not selected
};

bool read_page(std::string_view page, EndpointState& state, const EngineMetrics& metrics,
               std::optional<int> rank, std::set<int>& engines) {
  PageReader reader(state);
  LineFilter filter(metrics);
  bool any = false;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    const std::string_view line = page.substr(0, end);
    page.remove_prefix(std::min(end + 1, page.size()));
    const auto sample = filter.concerns(line) ? read_metric(line) : std::nullopt;
    if (!sample) continue;
    if (sample->name == kStarted && metric_label(sample->labels, kWorkerOfRouter).empty())
      state.started_s = sample->value;
    const std::optional<int> engine = engine_of(*sample);
    if (sample->name == kRunning) engines.insert(engine.value_or(0));
    if (rank && engine.value_or(*rank) != *rank) continue;
    for (const EngineMetric& metric : metrics) {
      if (!metric.metric.matches(*sample)) continue;
      any = true;
      reader.read(metric, *sample);
    }
  }
  reader.finish();
  return any;
}

}  // namespace

bool read_engine_metrics(std::string_view page, EndpointState& state, const EngineMetrics& metrics,
                         std::optional<int> rank) {
  std::set<int> engines;
  return read_page(page, state, metrics, rank, engines);
}

std::vector<std::string> metric_names(const EngineMetrics& metrics) {
  std::set<std::string> names{std::string(kStarted), std::string(kRunning)};
  for (const EngineMetric& each : metrics) names.insert(each.metric.name);
  return {names.begin(), names.end()};
}

EnginePage read_engine_page(const Member& member, std::string_view page, const EngineMetrics& metrics,
                            std::int64_t now_us) {
  EnginePage read;
  EndpointState state = member.state;
  state.attributes.reset();  // drops attributes of earlier pages
  std::set<int> engines;
  const auto rank = member.endpoint->shares_port ? std::optional(member.endpoint->rank) : std::nullopt;
  if (read_page(page, state, metrics, rank, engines)) {
    state.observed_us = now_us;
    read.state = std::move(state);
  }
  // A server with a single rank may have any number in its label, so ranks count only if they are 0 to
  // count - 1.
  const auto count = static_cast<int>(engines.size());
  if (count > 1 && count <= kRanksMax && *engines.rbegin() == count - 1) read.ranks = count;
  return read;
}

}  // namespace octavo::fleet
