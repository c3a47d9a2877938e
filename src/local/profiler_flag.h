// --profiler-config: options for traces of an engine's steps; used by the server and by the bindings.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "serve/service.h"

namespace octavo {

void add_profiler_flag(CLI::App& command, ServeOptions& options, const std::string& group);

}  // namespace octavo
