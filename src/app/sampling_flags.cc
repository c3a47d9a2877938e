#include "app/sampling_flags.h"

#include <type_traits>

#include "local/flag_table.h"
#include "request/sampling_fields.h"

namespace octavo {
namespace {

constexpr const char* kGroup = "Sampling";

template <class T>
CLI::Option* add_value_flag(CLI::App& command, const SamplingField& field, boost::json::object& body) {
  return check_number<T>(command.add_option_function<T>(
      std::string(field.flag), [&body, name = field.name](const T& value) { body[name] = value; },
      std::string(field.help)));
}

template <class T>
CLI::Option* add_flag(CLI::App& command, const SamplingField& field, boost::json::object& body, const T*) {
  const std::string flag(field.flag), help(field.help);
  if constexpr (std::is_same_v<T, bool>) {
    return command.add_flag_callback(flag, [&body, name = field.name] { body[name] = true; }, help);
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    using Texts = std::vector<std::string>;
    return command
        .add_option_function<Texts>(
            flag,
            [&body, name = field.name](const Texts& texts) {
              body[name] = boost::json::array(texts.begin(), texts.end());
            },
            help + "; can be given several times")
        ->allow_extra_args(false);
  } else if constexpr (std::is_same_v<T, double>) {
    return add_value_flag<double>(command, field, body);
  } else {
    return add_value_flag<std::int64_t>(command, field, body);
  }
}

}  // namespace

void add_sampling_flags(CLI::App& command, boost::json::object& body) {
  check_number<std::int64_t>(command.add_option_function<std::int64_t>(
                                 "--max-tokens", [&body](std::int64_t value) { body["max_tokens"] = value; },
                                 "Maximum number of output tokens"))
      ->group(kGroup);
  for (const SamplingField& field : sampling_fields()) {
    if (field.flag.empty()) continue;
    std::visit(
        [&]<class T>(MemberPath<SamplingParams, T>) {
          add_flag(command, field, body, static_cast<const T*>(nullptr))->group(kGroup);
        },
        field.member);
  }
}

}  // namespace octavo
