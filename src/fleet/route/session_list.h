// GET /v1/sessions of a router: the sessions of all workers.
#pragma once

#include "fleet/route/fan_out.h"

namespace octavo::fleet {

bool is_session_list(const http::Request& request);

// Merges the lists of the workers, each of which has up to `limit` sessions. A list of a worker that did not
// respond is left out, and an error is returned only if no worker has responded.
MergeAnswers merge_session_lists(const http::Request& request);

}  // namespace octavo::fleet
