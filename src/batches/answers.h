#pragma once

#include <string_view>

#include "base/error.h"
#include "batches/records.h"
#include "batches/store.h"

namespace octavo::batches {

// Ends a batch that has no running lines. Writes its answers in the order of the lines, and sets `status`,
// or `cancelled` if a client has cancelled the batch. Lines without an answer are reported as cancelled or
// expired. If the input file is missing, only the answers are written. errors: as in fail_batch; if "", the
// batch keeps its errors.
Result<> finish_batch(Store& store, const std::string& batch_id, std::string_view status,
                      const std::string& errors = "");

// Ends a batch before any of its lines has run. errors: JSON array of {"code", "line", "message", "param"}.
Result<> fail_batch(Store& store, const std::string& batch_id, const std::string& errors);

}  // namespace octavo::batches
