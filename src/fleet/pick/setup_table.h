// Table of the plugins in an EndpointPickerConfig that are settings of the picker instead of steps of a
// decision.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fleet/decide/plugin_table.h"
#include "fleet/pick/endpoint_picker_config.h"

namespace octavo::fleet {

class Parameters;
class PrefillConfig;

enum class SetupKind : std::uint8_t { handler, source, extractor, discovery, parser, producer };

struct SetupTarget {
  const std::string& name;
  EndpointPickerConfig& config;
  PrefillConfig& prefill;
};

struct SetupRow {
  std::string_view type;
  SetupKind kind;
  void (*read)(Parameters&, SetupTarget&);  // adds errors to the parameters
  Stability stability = Stability::beta;
};

std::span<const SetupRow> setup_table();
const SetupRow* find_setup(std::string_view type);  // null: unknown type

extern const PageSource kModelsPage;

// Reads the parameters of precise-prefix-cache-producer that configure the source of KV cache events.
void read_cache_events(Parameters& parameters, CacheEventsSource& source);

}  // namespace octavo::fleet
