#include "app/given_flags.h"

#include "app/environment.h"
#include "local/engine_flags.h"
#include "local/find_model.h"

namespace octavo {

std::vector<GivenFlag> given_engine_flags(const CLI::App& command) {
  CLI::App engine;
  EngineOptions options;
  HubFlags hub;
  add_engine_flags(engine, options);
  add_hub_flags(engine, hub, environment);
  std::vector<GivenFlag> given;
  for (const CLI::Option* option : engine.get_options()) {
    const std::string flag = "--" + option->get_single_name();
    const CLI::Option* here = command.get_option_no_throw(flag);
    if (here == nullptr || here->count() == 0 || flag == "--model" || flag == "--hf-token") continue;
    std::string value = here->results().back();
    if (option->get_expected_max() == 0)  // for "!--off", giving the flag means false
      value = option->get_flag_value(option->get_single_name(), "true") == value ? "true" : "false";
    given.push_back({flag, std::move(value)});
  }
  return given;
}

std::vector<std::string> engine_process_command(const CLI::App& command) {
  std::vector<std::string> words{"octavo", "serve"};
  for (const GivenFlag& given : given_engine_flags(command)) words.push_back(given.flag + "=" + given.value);
  words.emplace_back(kRunEngineFlag);
  return words;
}

}  // namespace octavo
