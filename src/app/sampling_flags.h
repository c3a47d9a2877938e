// Flags for sampling parameters, which become fields of a request body.
#pragma once

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <vector>

namespace octavo {

// Adds --max-tokens and the flags of request/sampling_fields.h. A flag sets a field of `body`, which must
// outlive the subcommand. The parser of requests checks the values.
void add_sampling_flags(CLI::App& command, boost::json::object& body);

}  // namespace octavo
