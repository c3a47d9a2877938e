#include "app/help_formatter.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octavo {
namespace {

constexpr std::size_t kColumn = 42;  // first column of descriptions

std::size_t line_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return std::clamp<std::size_t>(size.ws_col, kColumn + 30, 120);
}

// Breaks the text between words so that it fits beside the names.
std::string wrapped(std::string_view text) {
  const std::size_t most = line_width() - kColumn;
  std::string lines;
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (used > 0 && used + 1 + word.size() > most) {
      lines += '\n';
      used = 0;
    } else if (used > 0) {
      lines += ' ';
      ++used;
    }
    lines += word;
    used += word.size();
  }
  return lines;
}

// If a flag has more values than this, the help does not list them, because the flag's description names
// them.
constexpr std::size_t kChoicesMax = 40;

// Returns "{a,b}" for "TEXT:{a,b}", or "" if any value is valid.
std::string choices(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find(":{");
  return begin == std::string::npos ? "" : type.substr(begin + 1);
}

// Returns a short name for the value. CLI11's name joins the type and all checks: "INT:INT in [1 -
// 268435456]", "UINT:NONNEGATIVE", "TEXT:{a,b}".
std::string value_name(const CLI::Option& option) {
  const std::string all = option.get_type_name();
  const std::size_t colon = all.find(':');
  const std::string type = all.substr(0, colon);
  const std::string check = colon == std::string::npos ? "" : all.substr(colon + 1);
  if (check.starts_with('{')) return check.size() <= kChoicesMax ? check : "NAME";
  if (const std::size_t range = check.find(" in ["); range != std::string::npos) {
    std::string limits = check.substr(range + 5);
    if (!limits.empty() && limits.back() == ']') limits.pop_back();
    const std::size_t dash = limits.find(" - ");
    if (dash != std::string::npos) limits.replace(dash, 3, " to ");
    return limits;
  }
  if (type == "INT" || type == "UINT") return "NUMBER";
  if (type == "FLOAT") return "NUMBER";
  if (check == "FILE") return "FILE";
  return type;
}

}  // namespace

HelpFormatter::HelpFormatter() { column_width(kColumn); }

// Removes CLI11's suffix: "--no-cache{false}".
std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  std::string name = CLI::Formatter::make_option_name(option, is_positional);
  constexpr std::string_view kMark = "{false}";
  for (std::size_t at = name.find(kMark); at != std::string::npos; at = name.find(kMark))
    name.erase(at, kMark.size());
  return name;
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return "";
  std::string text = " " + value_name(*option);
  if (option->get_required()) text += " (required)";
  if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
  return text;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (const std::string names = choices(*option); names.size() > kChoicesMax) {
    text += ". One of: ";
    for (const char c : names.substr(1, names.size() - 2)) text += c == ',' ? ", " : std::string(1, c);
  }
  if (!option->get_envname().empty()) text += " (environment: " + option->get_envname() + ")";
  return wrapped(text);
}

std::string ShortHelpFormatter::make_help(const CLI::App* app, std::string name,
                                          CLI::AppFormatMode mode) const {
  if (mode != CLI::AppFormatMode::Normal) return HelpFormatter::make_help(app, std::move(name), mode);
  std::string text = make_description(app) + make_usage(app, std::move(name)) + make_positionals(app);
  for (const std::string& group : app->get_groups()) {
    const std::vector<const CLI::Option*> shown = app->get_options([&](const CLI::Option* option) {
      return option->get_group() == group && option->nonpositional() &&
             common_.contains("--" + option->get_single_name());
    });
    if (!group.empty() && !shown.empty()) text += make_group(group, false, shown);
  }
  const std::size_t all = app->get_options([](const CLI::Option* option) {
                               return !option->get_group().empty() && option->nonpositional();
                             })
                              .size();
  return text + fmt::format("\nTo print all {} flags: octavo {} --help-all\n", all, app->get_name());
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  std::stringstream out;
  CLI::detail::format_help(out, command->get_name(), wrapped(command->get_description()), kColumn);
  return out.str();
}

}  // namespace octavo
