// --profiler-config: traces of an engine's steps, for the server and for the bindings.
#pragma once

#include <CLI/CLI.hpp>

#include "serve/service.h"

namespace octavo {

CLI::Option* add_profiler_flag(CLI::App& command, ServeOptions& options);

}  // namespace octavo
