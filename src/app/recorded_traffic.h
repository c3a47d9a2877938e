// Traffic for `octavo simulate` from records of `octavo serve --record`.
#pragma once

#include <string>

#include "base/error.h"
#include "fleet/simulate/trace.h"

namespace octavo {

// Whether the path is a folder of records, or one of its files.
bool is_recorded_traffic(const std::string& path);

// Each recorded answer is a request. Prompts share blocks of `block_tokens` tokens as the recorded ones do.
// Errors: a line is no record; only hashes are recorded.
Result<fleet::Trace> read_recorded_traffic(const std::string& path, int block_tokens);

}  // namespace octavo
