// The flags of a command as a table with one row for each flag. add_flags() adds the rows to the parser:
//
//   constexpr FlagRow<EngineOptions> kDevice[] = {
//       {"--cpu-threads", flag::to<&EngineOptions::device, &DeviceOptions::threads>, "Compute threads; ..",
//        flag::range(0, 1024)},
//       {"--eplb-config", flag::parsed<&read_json, &EngineOptions::kv_events>, ".."},
//   };
//   add_flags(command, options, "Device", kDevice);
#pragma once

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/member_path.h"

namespace octavo {

// Range of values that a flag accepts.
template <class Number>
struct Between {
  Number min, max;
  bool suffix = false;  // whether suffixes are accepted, as in 32k or 1M
};
struct NotNegative {
  bool suffix = false;
};
struct OneOf {
  std::string_view names;  // separated by '|'
};
struct OneOfList {
  std::vector<std::string> (*names)();  // returns names from a table in another file
};
struct Folder {};  // an existing folder
using FlagValues = std::variant<std::monostate, Between<int>, Between<std::int64_t>, Between<std::uint64_t>,
                                Between<double>, NotNegative, OneOf, OneOfList, Folder>;

// A value and its name on the command line.
template <class Value>
struct Choice {
  std::string_view name;
  Value value;
};

struct FlagRest {
  // environment variable that also sets the value
  std::string_view environment{};
  // name of another flag that must be given together with this one
  std::string_view needs{};
  // name of another flag that must not be given together with this one
  std::string_view excludes{};
  bool no_default = false;
  bool required = false;
  // separator of list elements in one argument; 0: each argument is an element
  char delimiter = 0;
};

using FlagHelp = std::variant<const char*, std::string (*)()>;

template <class Options>
struct FlagRow {
  const char* names;  // CLI11's syntax: "--on,!--off"
  CLI::Option* (*add)(CLI::App&, Options&, const FlagRow&);
  FlagHelp help = "";
  FlagValues values = {};
  FlagRest rest = {};
};

std::string text_of(const FlagHelp& help);
Result<boost::json::object> json_object(const std::string& text);
// Throws CLI11's error for a value that the row's reader did not accept.
[[noreturn]] void refuse_flag(const std::string& name, const Error& error);
void finish_flag(CLI::App& command, CLI::Option& option, const std::string& group, const FlagValues& values,
                 const FlagRest& rest);

// Parsing fills `options`, which must outlive the subcommand. group: heading in the help; "": the help
// omits the flags.
template <class Options, std::size_t n>
void add_flags(CLI::App& command, Options& options, const std::string& group,
               const FlagRow<Options> (&rows)[n]) {
  for (const FlagRow<Options>& row : rows)
    finish_flag(command, *row.add(command, options, row), group, row.values, row.rest);
}

// Accepts numbers from min to max. Unlike CLI11's check, its error names the kind of number, and 0.01 as
// 0.01.
template <class Number>
CLI::Validator number_between(Number min, Number max);

template <class Value>
struct NumberIn {
  using type = Value;
};
template <class Value>
  requires requires { typename Value::value_type; }
struct NumberIn<Value> {
  using type = typename Value::value_type;
};

// Adds a check for a flag without a range, so that the error names the limits of the value's type. Does
// nothing if the value has no numbers.
template <class Value>
CLI::Option* check_number(CLI::Option* option) {
  using Number = typename NumberIn<Value>::type;  // an element of a list or optional
  if constexpr (std::is_arithmetic_v<Number> && !std::same_as<Number, bool> && !std::same_as<Number, char>)
    option->check(number_between(std::numeric_limits<Number>::lowest(), std::numeric_limits<Number>::max()));
  return option;
}

// Adds a flag with a number, for commands without a table.
template <class Value>
CLI::Option* add_number(CLI::App& command, const char* names, Value& value, const char* help) {
  return check_number<Value>(command.add_option(names, value, help));
}

namespace flag {

template <class Number>
constexpr Between<Number> range(Number min, Number max) {
  return {min, max};
}
constexpr Between<int> count(int min, int max) { return {min, max, true}; }

// How a row stores the value of its flag:

// Stores the value in a member. A bool is a switch. The help omits the default of lists and optionals.
template <auto... Path>
inline constexpr auto to =
    []<class Options>(CLI::App& command, Options& options, const FlagRow<Options>& row) {
      auto& value = follow<Path...>(options);
      using Value = std::remove_reference_t<decltype(value)>;
      if constexpr (std::same_as<Value, bool>) {
        return command.add_flag(row.names, value, text_of(row.help));
      } else {
        CLI::Option* option = command.add_option(row.names, value, text_of(row.help));
        bool has_default = std::is_arithmetic_v<Value>;
        if constexpr (std::ranges::range<Value>) has_default = !std::ranges::empty(value);
        if (has_default && !row.rest.no_default) option->capture_default_str();
        if (std::holds_alternative<std::monostate>(row.values)) check_number<Value>(option);
        return option;
      }
    };

// Stores the value times `factor`: the flag is in seconds, the member in smaller units.
template <int factor, auto... Path>
inline constexpr auto seconds =
    []<class Options>(CLI::App& command, Options& options, const FlagRow<Options>& row) {
      auto& value = follow<Path...>(options);
      using Value = std::remove_reference_t<decltype(value)>;
      CLI::Option* option = command.add_option_function<int>(
          row.names, [&value](int given) { value = static_cast<Value>(given) * factor; }, text_of(row.help));
      if (!row.rest.no_default) option->default_str(std::to_string(value / factor));
      return option;
    };

// Stores the choice with the given name.
template <auto& choices, auto... Path>
inline constexpr auto chosen =
    []<class Options>(CLI::App& command, Options& options, const FlagRow<Options>& row) {
      auto& value = follow<Path...>(options);
      std::vector<std::string> names;
      std::string now;
      for (const auto& choice : choices) {
        names.emplace_back(choice.name);
        if (choice.value == value && now.empty()) now = choice.name;
      }
      CLI::Option* option = command
                                .add_option_function<std::string>(
                                    row.names,
                                    [&value](const std::string& name) {
                                      for (const auto& choice : choices)
                                        if (choice.name == name) value = choice.value;
                                    },
                                    text_of(row.help))
                                ->check(CLI::IsMember(std::move(names)));
      if (!row.rest.no_default) option->default_str(now);
      return option;
    };

template <auto Read, class Target, class Given>
concept ReadsInto = std::invocable<decltype(Read), const Given&, Target&>;
template <auto Read, class Target, class Given>
concept ReadsFlag = ReadsInto<Read, Target, Given> || std::invocable<decltype(Read), const Given&>;

template <auto Read, class Target, class Given>
void read_flag(const std::string& name, const Given& given, Target& target) {
  if constexpr (ReadsInto<Read, Target, Given>) {
    if (const auto done = Read(given, target); !done) refuse_flag(name, done.error());
  } else {
    auto value = Read(given);
    if (!value) refuse_flag(name, value.error());
    target = *std::move(value);
  }
}

// Passes the value to `Read`, which takes a string, a list of strings, or a JSON object. `Read` returns the
// value to store, or sets the member that it receives. With an empty path, it receives all options.
template <auto Read, auto... Path>
inline constexpr auto parsed =
    []<class Options>(CLI::App& command, Options& options, const FlagRow<Options>& row) {
      auto& target = follow<Path...>(options);
      using Target = std::remove_reference_t<decltype(target)>;
      using Texts = std::vector<std::string>;
      const std::string name = row.names;
      if constexpr (ReadsFlag<Read, Target, std::string>) {
        return command.add_option_function<std::string>(
            name, [&target, name](const std::string& text) { read_flag<Read>(name, text, target); },
            text_of(row.help));
      } else if constexpr (ReadsFlag<Read, Target, Texts>) {
        return command
            .add_option_function<Texts>(
                name, [&target, name](const Texts& texts) { read_flag<Read>(name, texts, target); },
                text_of(row.help))
            ->expected(1, -1);
      } else {
        return command.add_option_function<std::string>(
            name,
            [&target, name](const std::string& text) {
              const auto object = json_object(text);
              if (!object) refuse_flag(name, object.error());
              read_flag<Read>(name, *object, target);
            },
            text_of(row.help));
      }
    };

// Calls Set(options) if the switch is given.
template <auto Set>
inline constexpr auto calls =
    []<class Options>(CLI::App& command, Options& options, const FlagRow<Options>& row) {
      return command.add_flag_callback(row.names, [&options] { Set(options); }, text_of(row.help));
    };

// Stores nothing, because app/arguments.cc handles the flag.
inline constexpr auto nowhere = []<class Options>(CLI::App& command, Options&, const FlagRow<Options>& row) {
  const std::string help = text_of(row.help);
  return command.add_option(row.names, help);
};

}  // namespace flag
}  // namespace octavo
