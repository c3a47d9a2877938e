#include "app/help_formatter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace octavo {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(HelpFormatter, WrapsBetweenWordsAndNamesValues) {
  CLI::App program("Test");
  program.formatter(std::make_shared<HelpFormatter>());
  int length = 7;
  std::string kind;
  bool flag = false;
  program
      .add_option(
          "--max-model-len", length,
          "Tokens of prompt and answer together, as many as the model takes when this is left out, and a few "
          "more words so that there is a second line")
      ->check(CLI::Range(1, 1 << 28))
      ->capture_default_str();
  program.add_option("--kind", kind, "Which")->check(CLI::IsMember({"one", "two"}));
  program.add_flag("--flag", flag, "On");
  const std::string help = program.help();
  EXPECT_THAT(help, HasSubstr("--max-model-len 1 to 268435456 [7]"));
  EXPECT_THAT(help, HasSubstr("--kind {one,two}"));
  EXPECT_THAT(help, Not(HasSubstr("INT")));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

TEST(ShortHelpFormatter, HelpHasTheCommonFlagsAndHelpAllAllFlags) {
  CLI::App program("Test", "octavo");
  CLI::App* command = program.add_subcommand("serve", "Serve");
  command->formatter(std::make_shared<ShortHelpFormatter>(std::set<std::string>{"--help", "--port"}));
  command->set_help_all_flag("--help-all", "All flags");
  int port = 0, rare = 0;
  command->add_option("--port", port, "Port")->group("Server");
  command->add_option("--rare", rare, "Rare")->group("Rare");
  const std::string help = command->help();
  EXPECT_THAT(help, HasSubstr("--port"));
  EXPECT_THAT(help, Not(HasSubstr("--rare")));
  EXPECT_THAT(help, Not(HasSubstr("Rare")));
  EXPECT_THAT(help, HasSubstr("To print all 4 flags: octavo serve --help-all"));
  EXPECT_THAT(command->help("", CLI::AppFormatMode::All), HasSubstr("--rare"));
}

}  // namespace
}  // namespace octavo
