// Plugins of an EndpointPickerConfig that do not decide, but say where what is decided from comes from: one
// row each.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fleet/pick/endpoint_picker_config.h"

namespace octavo::fleet {

class Parameters;

enum class SetupKind : std::uint8_t { handler, source, extractor, discovery, parser, producer };

struct SetupRow {
  std::string_view type;
  SetupKind kind;
  void (*read)(Parameters&, EndpointPickerConfig&);  // mistakes are left in the parameters
};

std::span<const SetupRow> setup_table();

extern const PageSource kModelsPage;

// The part of precise-prefix-cache-producer that says where engines tell what they hold.
void read_cache_events(Parameters& parameters, CacheEventsSource& source);

}  // namespace octavo::fleet
