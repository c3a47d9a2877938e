// Engine options by name, for callers that have no command line.
#pragma once

#include <boost/json/object.hpp>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// Fields are the flags of engine_flags.h and --enable-sleep-mode, with _ for -: {"model": "..",
// "max_model_len": 4096, "enable_prefix_caching": false}. Null fields are ignored. Errors: invalid_argument,
// with the field's name.
Result<RuntimeOptions> runtime_options(const boost::json::object& fields,
                                       const hub::Environment& environment);

}  // namespace octavo
