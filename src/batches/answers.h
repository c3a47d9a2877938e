// The end of a batch: its answers as output files.
#pragma once

#include <string_view>

#include "base/error.h"
#include "batches/records.h"
#include "batches/store.h"

namespace octavo::batches {

// Ends a batch of which no line runs: writes its answers in the order of the lines, and sets `status`, or
// `cancelled` if a client has cancelled it. Lines without an answer are reported as cancelled or expired.
Result<> finish_batch(Store& store, const std::string& batch_id, std::string_view status);

// Ends a batch whose input is wrong. errors: JSON array of {"code", "line", "message", "param"}.
Result<> fail_batch(Store& store, const std::string& batch_id, const std::string& errors);

}  // namespace octavo::batches
