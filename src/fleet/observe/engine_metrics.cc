#include "fleet/observe/engine_metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "fleet/observe/metric_line.h"

namespace octavo::fleet {
namespace {

enum class Gauge { waiting, running, kv_usage, cache_config, block_size, num_blocks, adapters };

struct Name {
  std::string_view name;
  Gauge gauge;
};

constexpr std::array kNames{
    Name{"vllm:num_requests_waiting", Gauge::waiting},
    Name{"vllm:num_requests_running", Gauge::running},
    Name{"vllm:kv_cache_usage_perc", Gauge::kv_usage},
    Name{"vllm:gpu_cache_usage_perc", Gauge::kv_usage},  // its name before vLLM 0.10
    Name{"vllm:cache_config_info", Gauge::cache_config},
    Name{"vllm:lora_requests_info", Gauge::adapters},
    Name{"sglang:num_queue_reqs", Gauge::waiting},
    Name{"sglang:num_running_reqs", Gauge::running},
    Name{"sglang:token_usage", Gauge::kv_usage},
    Name{"sglang:cache_config_info", Gauge::cache_config},
    Name{"trtllm_num_requests_waiting", Gauge::waiting},
    Name{"trtllm_num_requests_running", Gauge::running},
    Name{"trtllm_kv_cache_utilization", Gauge::kv_usage},
    Name{"trtllm_kv_cache_tokens_per_block", Gauge::block_size},
    Name{"trtllm_kv_cache_max_blocks", Gauge::num_blocks},
};

std::optional<Gauge> gauge_of(std::string_view name) {
  const auto found = std::ranges::find(kNames, name, &Name::name);
  return found == kNames.end() ? std::nullopt : std::optional(found->gauge);
}

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::max<std::int64_t>(value, 0);
}

// "a,b" as a list.
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

}  // namespace

bool read_engine_metrics(std::string_view page, EndpointState& state) {
  double waiting = -1, running = -1, kv_usage = -1, adapters_since = -1;
  bool any = false;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    const auto sample = read_metric(page.substr(0, end));
    page.remove_prefix(std::min(end + 1, page.size()));
    const std::optional<Gauge> gauge = sample ? gauge_of(sample->name) : std::nullopt;
    if (!gauge) continue;
    any = true;
    const auto& [name, labels, value] = *sample;
    switch (*gauge) {
      case Gauge::waiting:
        waiting = std::max(waiting, 0.0) + value;
        break;
      case Gauge::running:
        running = std::max(running, 0.0) + value;
        break;
      case Gauge::kv_usage:
        kv_usage = std::max(kv_usage, value);
        break;
      case Gauge::block_size:
        state.block_size = count(value);
        break;
      case Gauge::num_blocks:
        state.num_blocks = count(value);
        break;
      case Gauge::cache_config: {
        const std::string_view page_size = metric_label(labels, "page_size");
        const std::string_view pages = metric_label(labels, "num_pages");
        state.block_size = count(
            static_cast<double>(number(page_size.empty() ? metric_label(labels, "block_size") : page_size)));
        state.num_blocks = number(pages.empty() ? metric_label(labels, "num_gpu_blocks") : pages);
        break;
      }
      case Gauge::adapters:  // its value is a time: the latest series counts
        if (value < adapters_since) break;
        adapters_since = value;
        state.adapters = std::make_shared<const AdapterState>(
            AdapterState{list(metric_label(labels, "running_lora_adapters")),
                         list(metric_label(labels, "waiting_lora_adapters")),
                         count(static_cast<double>(number(metric_label(labels, "max_lora"))))});
        break;
    }
  }
  if (waiting >= 0) state.waiting = count(waiting);
  if (running >= 0) state.running = count(running);
  if (kv_usage >= 0) state.kv_usage = std::clamp(kv_usage, 0.0, 1.0);
  return any;
}

}  // namespace octavo::fleet
