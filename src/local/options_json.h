// Engine options by name, for callers that have no command line.
#pragma once

#include <boost/json/object.hpp>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// The fields are the flags of engine_flags.h, and --enable-sleep-mode, with _ for -: {"model": "..",
// "max_model_len": 4096, "enable_prefix_caching": false}. Null fields are left out. Errors: invalid_argument, naming the field.
Result<RuntimeOptions> runtime_options(const boost::json::object& fields,
                                       const hub::Environment& environment);

}  // namespace octavo
