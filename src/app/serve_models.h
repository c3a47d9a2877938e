// octavo serve with several models.
#pragma once

#include "app/serve_flags.h"
#include "base/error.h"

namespace octavo {

// Serves until a signal arrives.
Result<> serve_models(ServeCommand& c);

}  // namespace octavo
