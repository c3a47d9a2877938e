// Writes a routing decision as JSON, for the header X-Octavo-Explain.
#pragma once

#include <string>
#include <string_view>

#include "fleet/decide/cycle.h"
#include "fleet/decide/decision.h"

namespace octavo::fleet {

std::string explain(const Cycle& cycle, std::string_view policy, const Decision& decision);

}  // namespace octavo::fleet
