#include "fleet/observe/model_states.h"

#include <algorithm>

#include "fleet/observe/metric_line.h"

namespace octavo::fleet {

std::vector<ModelState> read_model_states(std::string_view page) {
  std::vector<ModelState> models;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    const auto line = read_metric(page.substr(0, end));
    page.remove_prefix(std::min(end + 1, page.size()));
    if (!line || !line->name.starts_with("octavo:model_")) continue;
    const std::string name(metric_label(line->labels, "model_name"));
    if (std::ranges::find(models, name, &ModelState::name) == models.end())
      models.push_back(ModelState{.name = name});
    const auto model = std::ranges::find(models, name, &ModelState::name);
    if (line->name == "octavo:model_loaded") model->loaded = line->value != 0;
    if (line->name == "octavo:model_waiting") model->waiting = line->value != 0;
    if (line->name == "octavo:model_weight_bytes") model->weight_bytes = line->value;
    if (line->name == "octavo:model_kept_cache_bytes") model->cache_bytes = line->value;
    if (line->name == "octavo:model_last_use_seconds") model->last_use = line->value;
    if (line->name == "octavo:model_loads_total") model->loads = line->value;
  }
  return models;
}

}  // namespace octavo::fleet
