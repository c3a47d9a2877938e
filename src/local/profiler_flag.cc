#include "local/profiler_flag.h"

#include "local/flag_table.h"
#include "openai/request_fields.h"

namespace octavo {
namespace {

Result<> read_profiler(const std::string& text, ServeOptions& options) {
  TRY(const boost::json::object config, openai::parse_body(text));
  TRY(options.observe.step_trace, read_profiler_config(config));
  options.features.profiles = true;
  return {};
}

constexpr FlagRow<ServeOptions> kProfiler[] = {
    {"--profiler-config", flag::parsed<&read_profiler>,
     "Folder for profiles: between POST /start_profile and /stop_profile, the server writes the time of "
     R"(each step into a file for Perfetto and chrome://tracing. As JSON: {"profiler": "torch", )"
     R"("torch_profiler_dir": "traces"})"},
};

}  // namespace

void add_profiler_flag(CLI::App& command, ServeOptions& options, const std::string& group) {
  add_flags(command, options, group, kProfiler);
}

}  // namespace octavo
