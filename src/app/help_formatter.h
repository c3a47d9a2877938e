// Formats `--help`: breaks descriptions between words, and writes the names of values readably.
#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>
#include <utility>

namespace octavo {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

// Formats the help of a command with many flags: --help prints the common flags, --help-all prints all flags.
class ShortHelpFormatter final : public HelpFormatter {
 public:
  // common: names of flags, with their dashes.
  explicit ShortHelpFormatter(std::set<std::string> common) : common_(std::move(common)) {}
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

 private:
  std::set<std::string> common_;
};

}  // namespace octavo
