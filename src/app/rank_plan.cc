#include "app/rank_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/load/model_figures.h"
#include "model/model.h"
#include "model/shard.h"
#include "timing/roofline.h"

namespace octavo {
namespace {

constexpr double kMiB = 1 << 20;
constexpr int kContext = 2048;  // tokens of each timed sequence
constexpr int kRankBatches[] = {1, 32};

Result<const DeviceFigures*> device_figures(const std::string& device) {
  const auto found = std::ranges::find(known_devices(), device, &Named<DeviceFigures>::name);
  if (found != known_devices().end()) return &found->figures;
  std::vector<std::string_view> names;
  for (const auto& one : known_devices()) names.push_back(one.name);
  return invalid("device", "must be one of {}, got {}", fmt::join(names, ", "), device);
}

std::int64_t decode_us(const ModelFigures& figures, const DeviceFigures& device, int sequences) {
  StepWork work;
  for (int i = 0; i < sequences; ++i) work.add(kContext, 1);
  return roofline(figures, device, 1).microseconds(work);
}

}  // namespace

Result<std::string> rank_plan(const std::string& path, const RankPlanOptions& options) {
  const RankLayout& layout = options.layout;
  TRY(ModelSpec spec, load_spec(path));
  TRY(const Checkpoint checkpoint, open_checkpoint(path));
  const DeviceFigures* device = nullptr;
  if (!options.device.empty()) {
    TRY(device, device_figures(options.device));
  }
  const double whole = model_figures(spec).weight_bytes;
  spec.shard = {0, layout.tensor, options.whole_experts};
  TRY_VOID(check_shard(spec));
  TRY(const std::vector<Stage> stages, divide_layers(spec, layout.pipeline));

  std::string text = fmt::format("ranks: {}; tensor {}, pipeline {}{}\n", layout.size(), layout.tensor,
                                 layout.pipeline, options.whole_experts ? ", whole experts" : "");
  std::int64_t together[std::size(kRankBatches)] = {}, slowest[std::size(kRankBatches)] = {};
  for (const Stage& stage : stages) {
    if (layout.pipeline > 1) spec.stage = stage;
    const ModelFigures figures = model_figures(spec);
    text +=
        fmt::format("  stage {:<3} layers {:>3} to {:<3} weights {:.1f} MiB, KV cache {:.2f} KiB per token",
                    stage.index, spec.first_layer(), spec.end_layer() - 1,
                    figures.weight_bytes / whole * static_cast<double>(checkpoint.bytes()) / kMiB,
                    figures.kv_bytes_per_token / 1024);
    for (std::size_t i = 0; device != nullptr && i < std::size(kRankBatches); ++i) {
      const std::int64_t us = decode_us(figures, *device, kRankBatches[i]);
      together[i] += us;
      slowest[i] = std::max(slowest[i], us);
    }
    text += "\n";
  }
  for (std::size_t i = 0; device != nullptr && i < std::size(kRankBatches); ++i)
    text +=
        fmt::format("  decode of {:<3} at {} tokens on {}: {:.2f} ms per token, a new step every {:.2f} ms\n",
                    kRankBatches[i], kContext, options.device, static_cast<double>(together[i]) / 1e3,
                    static_cast<double>(slowest[i]) / 1e3);
  return text;
}

}  // namespace octavo
