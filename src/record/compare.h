// Whether a request can be replayed, and how the new answers differ from the recorded ones.
#pragma once

#include <string>
#include <vector>

#include "record/record.h"

namespace octavo {

// The request to submit again. An aborted answer ends after its recorded number of tokens. Errors:
// unsupported; the message is the reason why the record cannot be replayed.
Result<Request> replayed_request(const Record& record);

// The first difference of the answers, as text; "": all are identical. `now` has no hashes except those of
// pooling tasks. An aborted answer is compared up to its end.
std::string difference(const Record& record, const std::vector<RecordedAnswer>& now);

// The known reasons for a difference: one line of text. engine, adapter: those of the replay.
std::string reasons(const Record& record, const EngineIdentity& engine, const std::string& adapter);

}  // namespace octavo
