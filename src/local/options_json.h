// Engine options by name, for callers without a command line.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// The fields are flags of `octavo serve`, with _ in place of -, except flags that only a server has:
// {"model": "..", "max_model_len": 4096, "enable_prefix_caching": false}. Null fields are ignored. vLLM's
// options that have no effect here are logged. If engines run in separate processes, the result contains
// their command. Errors: invalid_argument or unsupported, naming the field.
Result<RuntimeOptions> runtime_options(const boost::json::object& fields,
                                       const hub::Environment& environment);

// The options that runtime_options() accepts, and vLLM's options that have no effect here. Each element is
// {"name", "short", "switch", "many", "default", "help"}.
boost::json::array option_list();

}  // namespace octavo
