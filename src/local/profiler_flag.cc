#include "local/profiler_flag.h"

#include "openai/request_fields.h"

namespace octavo {
namespace {

Result<> read(const std::string& text, ServeOptions& options) {
  TRY(const boost::json::object config, openai::parse_body(text));
  TRY(options.observe.step_trace, read_profiler_config(config));
  options.features.profiles = true;
  return {};
}

}  // namespace

CLI::Option* add_profiler_flag(CLI::App& command, ServeOptions& options) {
  constexpr const char* kName = "--profiler-config";
  return command.add_option_function<std::string>(
      kName,
      [&options, kName](const std::string& text) {
        if (const auto done = read(text, options); !done)
          throw CLI::ValidationError(kName, done.error().field + " " + done.error().message);
      },
      "POST /start_profile and /stop_profile write what each step takes into a file of this folder, for "
      R"(Perfetto and chrome://tracing. As JSON: {"profiler": "torch", "torch_profiler_dir": "traces"})");
}

}  // namespace octavo
