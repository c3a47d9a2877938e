#pragma once

#include <string_view>

#include "base/error.h"
#include "batches/records.h"
#include "batches/store.h"

namespace octavo::batches {

// Ends a batch that has no running lines. Writes the answers in the order of the input lines. Reports lines
// without an answer as cancelled or expired. Sets the batch's status to `status`, or to `cancelled` if a
// client has cancelled the batch. If the input file is missing, writes only the lines that have answers.
// errors: as in fail_batch(); "": the batch keeps its errors.
Result<> finish_batch(Store& store, const std::string& batch_id, std::string_view status,
                      const std::string& errors = "");

// Ends a batch before its first line has run. `errors` is a JSON array of {"code", "line", "message",
// "param"}.
Result<> fail_batch(Store& store, const std::string& batch_id, const std::string& errors);

}  // namespace octavo::batches
