#include "app/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <functional>
#include <iterator>
#include <memory>
#include <vector>

#include "app/commands.h"

namespace octavo {
namespace {

struct Word {
  std::string text;
  std::string help;
};

// A command and the words that may follow.
struct Level {
  std::vector<std::string> names;  // such as {"bench", "serve"}; empty: the program
  std::vector<Word> commands;
  struct Flag {
    std::vector<std::string> names;  // such as "--port", "-p"
    std::string help;
    bool takes_value;
    std::vector<std::string> values;  // empty: any value
  };
  std::vector<Flag> flags;
};

// Returns {"a", "b"} for "TEXT:{a,b}".
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find(":{"), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 2, end - begin - 2), ',');
}

Level::Flag flag_of(const CLI::Option& option) {
  Level::Flag flag{.names = {},
                   .help = option.get_description(),
                   .takes_value = option.get_expected_max() != 0,
                   .values = values_of(option)};
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  return flag;
}

void collect(const CLI::App& command, const std::vector<std::string>& names, std::vector<Level>& levels) {
  Level level{.names = names, .commands = {}, .flags = {}};
  const auto below = command.get_subcommands([](const CLI::App* app) { return !app->get_name().empty(); });
  for (const CLI::App* each : below) level.commands.push_back({each->get_name(), each->get_description()});
  for (const CLI::Option* option : command.get_options())
    if (option->nonpositional() && !option->get_group().empty()) level.flags.push_back(flag_of(*option));
  levels.push_back(std::move(level));
  for (const CLI::App* each : below) {
    std::vector<std::string> longer = names;
    longer.push_back(each->get_name());
    collect(*each, longer, levels);
  }
}

// Makes one line and quotes it for fish.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

std::string first_sentence(const std::string& text) { return text.substr(0, text.find_first_of(";\n")); }

// `at` names the typed commands, and the tables list the words that may follow. zsh also runs this script,
// so keys have no quotes and no spaces.
constexpr std::string_view kBash = R"sh(# bash completion of octavo: source <(octavo completion bash)
_octavo() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} at=octavo i of
  local -A octavo_commands octavo_flags octavo_values
{}  for ((i = 1; i < COMP_CWORD; ++i)); do
    case " ${{octavo_commands[$at]}} " in *" ${{COMP_WORDS[i]}} "*) at="${{at}}_${{COMP_WORDS[i]}}" ;; esac
  done
  of=${{octavo_values[${{at}}_$previous]:-none}}
  if [[ $of == none && $current == -* ]]; then of=${{octavo_flags[$at]}}; fi
  if [[ $of == none ]]; then of=${{octavo_commands[$at]:-file}}; fi
  if [[ $of == file ]]; then COMPREPLY=($(compgen -f -- "$current")); else COMPREPLY=($(compgen -W "$of" -- "$current")); fi
}}
complete -o filenames -F _octavo octavo
)sh";

std::string bash_tables(const std::vector<Level>& levels) {
  std::string out;
  const auto entry = [&](std::string_view table, std::string_view key,
                         const std::vector<std::string>& words) {
    fmt::format_to(std::back_inserter(out), "  octavo_{}[{}]='{}'\n", table, key, fmt::join(words, " "));
  };
  for (const Level& level : levels) {
    std::vector<std::string> commands, flags;
    for (const Word& command : level.commands) commands.push_back(command.text);
    for (const Level::Flag& flag : level.flags)
      flags.insert(flags.end(), flag.names.begin(), flag.names.end());
    std::string at = "octavo";
    for (const std::string& name : level.names) at += '_' + name;
    if (!commands.empty()) entry("commands", at, commands);
    entry("flags", at, flags);
    for (const Level::Flag& flag : level.flags)
      for (const std::string& name : flag.names)
        if (flag.takes_value)
          entry("values", at + '_' + name,
                flag.values.empty() ? std::vector<std::string>{"file"} : flag.values);
  }
  return out;
}

// zsh can use completions of bash.
std::string zsh(const std::string& bash) {
  return "#compdef octavo\n# zsh completion of octavo: source <(octavo completion zsh)\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash;
}

std::string fish(const std::vector<Level>& levels) {
  std::string out = "# fish completion of octavo: octavo completion fish | source\n";
  const auto add = [&](const std::string& condition, const std::string& what) {
    fmt::format_to(std::back_inserter(out), "complete -c octavo -n {} {}\n", in_quotes(condition), what);
  };
  for (const Level& level : levels) {
    std::string here;
    for (const std::string& name : level.names)
      here += (here.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + name);
    std::string next;
    for (const Word& command : level.commands) next += ' ' + command.text;
    const std::string open = next.empty()   ? here
                             : here.empty() ? "__fish_use_subcommand"
                                            : here + "; and not __fish_seen_subcommand_from" + next;
    for (const Word& command : level.commands)
      add(open, fmt::format("-f -a {} -d {}", command.text, in_quotes(first_sentence(command.help))));
    for (const Level::Flag& flag : level.flags) {
      std::string what;
      for (const std::string& name : flag.names)
        what += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (flag.takes_value) what += " -r";
      if (!flag.values.empty())
        what += fmt::format(" -f -a {}", in_quotes(fmt::format("{}", fmt::join(flag.values, " "))));
      add(open.empty() ? "true" : open,
          fmt::format("{} -d {}", what.substr(1), in_quotes(first_sentence(flag.help))));
    }
  }
  return out;
}

}  // namespace

std::string completion_script(const CLI::App& program, std::string_view shell) {
  std::vector<Level> levels;
  collect(program, {}, levels);
  if (shell == "fish") return fish(levels);
  const std::string bash = fmt::format(kBash, bash_tables(levels));
  return shell == "zsh" ? zsh(bash) : bash;
}

void add_completion(CLI::App& program, Outcome&) {
  CLI::App* command = program.add_subcommand(
      "completion", "Print the completion script of a shell, for: source <(octavo completion bash)");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "Shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&program, shell] { fmt::print("{}", completion_script(program, *shell)); });
}

}  // namespace octavo
