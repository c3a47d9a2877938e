#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// Converts keyword arguments of the bindings to engine options. A field has the name of a flag of `octavo
// serve`, with _ in place of -; flags of the server itself are not accepted. Example: {"model": "..",
// "max_model_len": 4096}. A field with the value null counts as not given. vLLM's options without effect here
// are logged. The result contains the command line of engine processes, if there are any. Returns
// invalid_argument or unsupported with the field.
Result<RuntimeOptions> runtime_options(const boost::json::object& fields,
                                       const hub::Environment& environment);

// Returns the options that runtime_options() accepts, including those of vLLM without effect here. Each
// element is {"name", "short", "switch", "many", "default", "help"}.
boost::json::array option_list();

}  // namespace octavo
