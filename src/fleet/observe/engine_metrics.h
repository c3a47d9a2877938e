// What an engine's /metrics page says of its load: Prometheus' text format, the names of vLLM, SGLang and
// TensorRT-LLM.
#pragma once

#include <string_view>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// Writes what it finds into `state`: waiting, running, kv_usage, block_size, num_blocks, adapters. Fields
// that the page does not speak of stay as they are. Of several series of one name the values are added up, of
// kv_usage the largest counts. False: the page has none of the names. Lines that make no sense are skipped.
bool read_engine_metrics(std::string_view page, EndpointState& state);

}  // namespace octavo::fleet
