// Converts recordings of `octavo serve --record` to traffic for `octavo simulate`.
#pragma once

#include <string>

#include "base/error.h"
#include "fleet/simulate/trace.h"

namespace octavo {

// Returns true for a folder of recordings, or for one of its files.
bool is_recorded_traffic(const std::string& path);

// Each recorded answer becomes a request. Prompts share blocks of `block_tokens` tokens as the recorded
// ones do. Returns an error if a line is not a record, or if the recording has only hashes.
Result<fleet::Trace> read_recorded_traffic(const std::string& path, int block_tokens);

}  // namespace octavo
