// Sampling parameters on the command line, as fields of a request body.
#pragma once

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <vector>

namespace octavo {

// Adds --temperature, --top-p, --max-tokens and others; each given flag sets the field of that name in
// `body`, which must outlive the subcommand. Values are checked with the request.
void add_sampling_flags(CLI::App& command, boost::json::object& body);

}  // namespace octavo
