// Adds --profiler-config, the options for traces of engine steps, to the server and the bindings.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "serve/service.h"

namespace octavo {

void add_profiler_flag(CLI::App& command, ServeOptions& options, const std::string& group);

}  // namespace octavo
