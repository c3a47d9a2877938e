// Replays recorded requests: checks whether a record can be replayed, and compares the new answers with the
// recorded answers.
#pragma once

#include <string>
#include <vector>

#include "record/record.h"

namespace octavo {

// Returns the request to submit again. If an answer was aborted, the request stops after the recorded
// number of tokens. Returns `unsupported`, with the reason, if the record cannot be replayed.
Result<Request> replayed_request(const Record& record);

// Describes the first difference between the answers, or returns "" if they are identical. Compares an
// aborted answer only up to its last token.
std::string difference(const Record& record, const std::vector<RecordedAnswer>& now);

// Lists the known reasons for a difference in one line. `engine` and `adapter` are those of the replay.
std::string reasons(const Record& record, const EngineIdentity& engine, const std::string& adapter);

}  // namespace octavo
