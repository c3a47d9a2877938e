#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// Returns the engine options of callers without a command line. The fields are flags of `octavo serve`,
// with _ instead of -, except flags of the server itself: {"model": "..", "max_model_len": 4096,
// "enable_prefix_caching": false}. Null fields are ignored. vLLM's options without an effect here are
// logged. If engines run in separate processes, the result contains their command. Errors: invalid_argument
// or unsupported, with the field.
Result<RuntimeOptions> runtime_options(const boost::json::object& fields,
                                       const hub::Environment& environment);

// Returns the options that runtime_options() accepts, and vLLM's options without an effect here. Each
// element is {"name", "short", "switch", "many", "default", "help"}.
boost::json::array option_list();

}  // namespace octavo
