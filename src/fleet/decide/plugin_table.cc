#include "fleet/decide/plugin_table.h"

#include <algorithm>

namespace octavo::fleet {
namespace {

#define OCTAVO_ROW(type, make, stability) {type, make, Stability::stability},
constexpr PluginRow kTable[] = {OCTAVO_PLUGINS(OCTAVO_ROW)};
#undef OCTAVO_ROW

}  // namespace

std::span<const PluginRow> plugin_table() { return kTable; }

const PluginRow* find_plugin(std::string_view type) {
  const auto found = std::ranges::find(kTable, type, &PluginRow::type);
  return found != std::end(kTable) ? &*found : nullptr;
}

}  // namespace octavo::fleet
