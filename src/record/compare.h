// Checks whether a request can be replayed, and compares the new answers with the recorded ones.
#pragma once

#include <string>
#include <vector>

#include "record/record.h"

namespace octavo {

// Returns the request to submit again. For an aborted answer, the request ends after the recorded number of
// tokens. Errors: unsupported, with the reason why the record cannot be replayed.
Result<Request> replayed_request(const Record& record);

// Describes the first difference between the answers; returns "" if all are identical. An aborted answer is
// compared only up to its last token.
std::string difference(const Record& record, const std::vector<RecordedAnswer>& now);

// Lists the known reasons for a difference, in one line. engine, adapter: those of the replay.
std::string reasons(const Record& record, const EngineIdentity& engine, const std::string& adapter);

}  // namespace octavo
