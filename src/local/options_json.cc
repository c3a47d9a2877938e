#include "local/options_json.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <string>
#include <vector>

#include "local/engine_flags.h"
#include "local/flag_table.h"
#include "local/pooler_config.h"
#include "local/profiler_flag.h"

namespace octavo {
namespace {

constexpr const char* kGroup = "Bindings";  // not printed

constexpr FlagRow<RuntimeOptions> kOwnFlags[] = {
    {"--enable-sleep-mode", flag::to<&RuntimeOptions::sleep_mode>},
    {"--pooler-config", flag::parsed<&read_pooler_config>},
};

std::string flag_of(std::string_view name) {
  std::string flag(name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

// A field as the words of a command line.
Result<> add_words(std::string_view name, const boost::json::value& value, const CLI::App& flags,
                   std::vector<std::string>& words) {
  if (value.is_null()) return {};
  const std::string flag = "--" + flag_of(name);
  const CLI::Option* known = flags.get_option_no_throw(flag);
  if (!known) return invalid(name, "there is no such option");
  const bool takes_value = known->get_expected_min() > 0;
  if (takes_value == value.is_bool())
    return invalid(name, "{}",
                   takes_value ? "needs a value other than true or false" : "must be true or false");
  if (takes_value) {
    words.push_back(flag + "=" +
                    (value.is_string() ? std::string(value.get_string()) : boost::json::serialize(value)));
  } else {
    words.push_back(flag + "=" + (value.get_bool() ? "true" : "false"));
  }
  return {};
}

}  // namespace

Result<RuntimeOptions> runtime_options(const boost::json::object& fields,
                                       const hub::Environment& environment) {
  RuntimeOptions options;
  CLI::App flags;
  add_engine_flags(flags, options.engine);
  add_hub_flags(flags, options.hub, environment);
  add_profiler_flag(flags, options.serve, kGroup);
  add_flags(flags, options, kGroup, kOwnFlags);
  std::vector<std::string> words;
  for (const auto& [name, value] : fields) TRY_VOID(add_words(name, value, flags, words));
  std::ranges::reverse(words);  // CLI11 reads them from the end
  try {
    flags.parse(words);
  } catch (const CLI::ParseError& error) {
    return invalid("", "{}", error.what());
  }
  return options;
}

}  // namespace octavo
