// --profiler-config: traces of an engine's steps, for the server and for the bindings.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "serve/service.h"

namespace octavo {

void add_profiler_flag(CLI::App& command, ServeOptions& options, const std::string& group);

}  // namespace octavo
