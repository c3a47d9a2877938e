// Formats `--help`: wraps descriptions between words, and simplifies the names of values.
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

// For commands with many flags: --help prints the common flags, --help-all all flags.
class ShortHelpFormatter final : public HelpFormatter {
 public:
  // common: names with dashes.
  explicit ShortHelpFormatter(std::set<std::string> common) : common_(std::move(common)) {}
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

 private:
  std::set<std::string> common_;
};

}  // namespace octavo
