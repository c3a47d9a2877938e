// Engine options by name, for callers that have no command line.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// Fields are the flags of `octavo serve` that a model without a server has, with _ for -: {"model": "..",
// "max_model_len": 4096, "enable_prefix_caching": false}. Null fields are ignored. Options of vLLM that have
// no effect are logged. Engines of several processes get their command. Errors: invalid_argument or
// unsupported, with the field's name.
Result<RuntimeOptions> runtime_options(const boost::json::object& fields,
                                       const hub::Environment& environment);

// The options that runtime_options() takes, and those of vLLM that have no effect: {"name", "short",
// "switch", "many", "default", "help"} each.
boost::json::array option_list();

}  // namespace octavo
