#include "app/arguments.h"

#include <fmt/ranges.h>
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "app/config_file.h"
#include "app/environment.h"
#include "base/edit_distance.h"
#include "base/log.h"
#include "local/engine_flags.h"
#include "local/lmcache_settings.h"
#include "local/numbers.h"
#include "local/vllm_flags.h"

namespace octavo {
namespace {

namespace json = boost::json;

// Maximum number of flags that an error lists.
constexpr std::size_t kListedMax = 8;

// Parts of a flag such as "--max_model_len=4" or "-tp".
struct Flag {
  std::string name;                  // "--max-model-len"
  std::string path;                  // "level" for "--compilation-config.level"
  std::optional<std::string> value;  // text after '='
};

bool is_number(std::string_view text) {
  return text.size() > 1 && (std::isdigit(static_cast<unsigned char>(text[1])) != 0 || text[1] == '.');
}

bool is_flag(std::string_view text) { return text.size() > 1 && text[0] == '-' && !is_number(text); }

Flag take_apart(std::string_view argument) {
  Flag flag;
  const std::size_t equals = argument.find('=');
  if (equals != std::string_view::npos) flag.value = argument.substr(equals + 1);
  argument = argument.substr(0, equals);
  const std::size_t dot = argument.find('.');
  if (dot != std::string_view::npos) flag.path = argument.substr(dot + 1);
  flag.name = argument.substr(0, dot);
  if (flag.name.starts_with("--")) std::ranges::replace(flag.name, '_', '-');
  return flag;
}

// "1" and "32k" become numbers, "ngram" a string.
json::value json_or_text(const std::string& text) {
  boost::system::error_code not_json;
  json::value value = json::parse(text, not_json);
  if (!not_json) return value;
  value = json::parse(expand_suffix(text), not_json);
  return not_json ? json::value(text) : value;
}

void merge(json::value& into, json::value&& from) {
  if (into.is_array() && from.is_array()) {
    for (json::value& item : from.get_array()) into.get_array().push_back(std::move(item));
    return;
  }
  if (!into.is_object() || !from.is_object()) {
    into = std::move(from);
    return;
  }
  for (auto& [key, value] : from.get_object()) merge(into.get_object()[key], std::move(value));
}

// Returns {"a": {"b": value}} for "a.b". For "a.b+", the value is a list of the texts between commas.
json::value nested(std::string_view path, const std::string& text) {
  json::value value = json_or_text(text);
  if (path.ends_with('+')) {
    path.remove_suffix(1);
    if (!value.is_array()) {
      json::array items;
      for (std::size_t at = 0; at <= text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        items.push_back(json_or_text(text.substr(at, comma - at)));
        at = comma + 1;
      }
      value = std::move(items);
    }
  }
  while (true) {
    const std::size_t dot = path.rfind('.');
    json::object object;
    object[path.substr(dot == std::string_view::npos ? 0 : dot + 1)] = std::move(value);
    value = std::move(object);
    if (dot == std::string_view::npos) return value;
    path = path.substr(0, dot);
  }
}

class Rewriter {
 public:
  Rewriter(const CLI::App& command, std::vector<std::string> arguments)
      : command_(command), of_vllm_(command.get_name() == "serve"), arguments_(std::move(arguments)) {}

  Result<std::vector<std::string>> rewrite() {
    TRY_VOID(insert_config_file());
    for (at_ = 0; at_ < arguments_.size();) {
      const std::string& argument = arguments_[at_++];
      if (!is_flag(argument) || argument == "--") {
        out_.push_back(argument);
        continue;
      }
      TRY_VOID(rewrite_flag(take_apart(argument)));
    }
    for (auto& [name, value] : nested_) {
      TRY_VOID(pass_on({.name = name, .path = {}, .value = json::serialize(value)}));
    }
    return std::move(out_);
  }

 private:
  const CLI::Option* option(const std::string& name) const { return command_.get_option_no_throw(name); }
  const VllmFlag* vllm_flag(const std::string& name) const {
    return of_vllm_ ? find_vllm_flag(name) : nullptr;
  }

  Result<> rewrite_flag(Flag flag) {
    expand_shorthand(flag);
    TRY_VOID(expand_prefix(flag));
    if (const VllmFlag* known = vllm_flag(flag.name); known != nullptr && !known->stands_for.empty()) {
      const Flag field = take_apart(known->stands_for);
      flag.name = field.name;
      flag.path = field.path;
    }
    if (flag.path.empty()) return pass_on(std::move(flag));
    TRY(std::string value, value_of(flag));
    json::value& whole = nested_.try_emplace(flag.name, json::object()).first->second;
    merge(whole, nested(flag.path, value));
    return {};
  }

  void expand_shorthand(Flag& flag) const {
    if (!of_vllm_ || flag.name.starts_with("--")) return;
    if (flag.name.starts_with("-O") && flag.name.size() > 2) {
      flag.value = flag.name.substr(2);
      flag.name.resize(2);
    }
    const VllmFlag* known = find_vllm_flag(flag.name);
    if (known != nullptr && option(flag.name) == nullptr) flag.name = known->name;
  }

  bool is_known(const std::string& name) const {
    return option(name) != nullptr || vllm_flag(name) != nullptr;
  }

  bool is_switch(const std::string& name) const {
    if (const CLI::Option* known = option(name)) return known->get_expected_max() == 0;
    const VllmFlag* known = vllm_flag(name);
    return known != nullptr && known->takes == Takes::nothing;
  }

  // --no-x becomes --x=false, --disable-x becomes --enable-x=false, and --enable-x becomes --disable-x=false.
  void expand_negation(Flag& flag) const {
    constexpr std::pair<std::string_view, std::string_view> kInverses[] = {
        {"--no-", "--"}, {"--disable-", "--enable-"}, {"--enable-", "--disable-"}};
    if (is_known(flag.name)) return;
    for (const auto& [negative, positive] : kInverses) {
      if (!flag.name.starts_with(negative)) continue;
      const std::string name = std::string(positive) + flag.name.substr(negative.size());
      if (!is_switch(name)) continue;
      flag.name = name;
      flag.value = "false";
      return;
    }
  }

  // As in vLLM, a prefix of exactly one flag is this flag.
  Result<> expand_prefix(Flag& flag) const {
    Flag positive = flag;
    expand_negation(positive);
    if (!flag.name.starts_with("--") || is_known(positive.name)) return {};
    std::set<std::string> found;
    for (const std::string& name : names()) {
      if (name.starts_with(flag.name)) found.insert(name);
      const std::string negative = "--no-" + name.substr(2);
      if (is_switch(name) && negative.starts_with(flag.name)) found.insert(negative);
    }
    if (found.size() == 1) flag.name = *found.begin();
    if (found.size() > 1 && found.size() <= kListedMax)
      return invalid(flag.name, "is not a flag of this command; did you mean {}?", fmt::join(found, " or "));
    return {};
  }

  Result<> pass_on(Flag flag) {
    expand_negation(flag);
    if (const CLI::Option* known = option(flag.name)) {
      if (flag.name == kKvTransferFlag && (flag.value || value_follows())) {
        TRY(const std::string given, value_of(flag));
        TRY(flag.value, with_lmcache_settings(given, environment));
      }
      if (!flag.value && known->get_expected_min() > 0 && !value_follows())
        return invalid(flag.name, "needs a value");
      if (flag.value && flag.name.starts_with("--"))
        out_.push_back(flag.name + "=" + *flag.value);
      else
        out_.push_back(flag.name + flag.value.value_or(""));
      return {};
    }
    if (const VllmFlag* known = vllm_flag(flag.name)) return drop(*known, flag);
    return unknown(flag.name);
  }

  // Logs and drops a flag of vLLM without effect here.
  Result<> drop(const VllmFlag& known, const Flag& flag) {
    std::vector<std::string> values;
    if (flag.value)
      values.push_back(*flag.value);
    else if (known.takes == Takes::nothing)
      values.emplace_back("true");
    else
      while (value_follows()) {
        values.push_back(arguments_[at_++]);
        if (known.takes != Takes::values) break;
      }
    if (values.empty() && known.takes != Takes::maybe_value) return invalid(known.name, "needs a value");
    for (const std::string& value : values) TRY_VOID(check_harmless(known, value));
    // Logs only in the server, not in its engine processes, which have the same command line.
    if (std::ranges::find(arguments_, kRunEngineFlag) == arguments_.end())
      log_info("{} has no effect: {}", known.name, known.reason);
    return {};
  }

  bool value_follows() const { return at_ < arguments_.size() && !is_flag(arguments_[at_]); }

  Result<std::string> value_of(const Flag& flag) {
    if (flag.value) return *flag.value;
    if (!value_follows()) return invalid(flag.name + "." + flag.path, "needs a value");
    return arguments_[at_++];
  }

  // Returns the long names of all flags.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const CLI::Option* known : command_.get_options())
      if (!known->get_lnames().empty()) names.push_back("--" + known->get_lnames().front());
    if (of_vllm_)
      for (const VllmFlag& known : vllm_flags())
        if (!known.works) names.emplace_back(known.name);
    return names;
  }

  std::unexpected<Error> unknown(const std::string& name) const {
    const std::vector<std::string> known = names();
    const std::string_view meant = meant_name(name, {known.begin(), known.end()});
    if (meant.empty()) return invalid(name, "is not a flag of this command; --help lists them");
    return invalid(name, "is not a flag of this command; did you mean {}?", meant);
  }

  // Inserts the flags of the file before those of the command line, which override them.
  Result<> insert_config_file() {
    if (!of_vllm_) return {};
    std::string path;
    std::vector<std::string> given;
    for (std::size_t i = 0; i < arguments_.size();) {
      const Flag flag = is_flag(arguments_[i]) ? take_apart(arguments_[i]) : Flag{};
      given.push_back(flag.name);
      if (flag.name != "--config") {
        ++i;
        continue;
      }
      if (!path.empty()) return invalid("--config", "may be given only once");
      if (!flag.value && (i + 1 == arguments_.size() || is_flag(arguments_[i + 1])))
        return invalid("--config", "needs a file");
      path = flag.value ? *flag.value : arguments_[i + 1];
      const auto first = arguments_.begin() + static_cast<std::ptrdiff_t>(i);
      arguments_.erase(first, first + (flag.value ? 1 : 2));
    }
    if (path.empty()) return {};
    TRY(const std::vector<ConfigEntry> entries, read_config_file(path));
    const bool names_model = !arguments_.empty() && !is_flag(arguments_.front());
    std::vector<std::string> from_file;
    for (const ConfigEntry& entry : entries) {
      const std::string name = take_apart("--" + entry.name).name;
      if (name == "--model" && names_model) continue;
      if (std::ranges::find(given, name) != given.end()) continue;
      std::ranges::move(arguments_of(entry), std::back_inserter(from_file));
    }
    arguments_.insert(arguments_.begin() + (names_model ? 1 : 0), from_file.begin(), from_file.end());
    return {};
  }

  const CLI::App& command_;
  const bool of_vllm_;
  std::vector<std::string> arguments_;
  std::size_t at_ = 0;  // index of the next argument
  std::vector<std::string> out_;
  std::map<std::string, json::value> nested_;
};

}  // namespace

void take_last(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    if (option->get_items_expected_max() <= 1) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  for (CLI::App* command : app.get_subcommands({})) take_last(*command);
}

Result<std::vector<std::string>> read_arguments(const CLI::App& command, std::vector<std::string> arguments) {
  return Rewriter(command, std::move(arguments)).rewrite();
}

}  // namespace octavo
