// The table of all plugin types and their make functions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/decide/plugin.h"
#include "fleet/decide/plugin_list.h"

namespace octavo::fleet {

class Parameters;
class Plugins;

// Makes a plugin, which can look up the plugins that it uses in `plugins` (see Plugins::producer).
using MakePlugin = std::unique_ptr<Plugin> (*)(Parameters& parameters, Plugins& plugins);

enum class Stability : std::uint8_t { beta, alpha };

struct PluginRow {
  std::string_view type;  // llm-d's name if llm-d has the plugin
  MakePlugin make;        // never null; adds its errors to `parameters`
  Stability stability = Stability::beta;
};

std::span<const PluginRow> plugin_table();

const PluginRow* find_plugin(std::string_view type);  // null: unknown type

#define OCTAVO_DECLARE(type, make, stability) std::unique_ptr<Plugin> make(Parameters&, Plugins&);
OCTAVO_PLUGINS(OCTAVO_DECLARE)
#undef OCTAVO_DECLARE

// Returns the error for an unknown type, with suggestions of similar types from the table and from
// `others`.
std::unexpected<Error> unknown_plugin(std::string_view field, std::string_view type,
                                      std::vector<std::string_view> others = {});

}  // namespace octavo::fleet
