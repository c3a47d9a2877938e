#include "app/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

using testing::HasSubstr;
using testing::Not;

class Completion : public testing::Test {
 protected:
  Completion() : program_("Test") {
    CLI::App* serve = program_.add_subcommand("serve", "Serve a model; with more words");
    serve->add_option("--port,-p", port_, "Port");
    serve->add_option("--kind", kind_, "Whose kind")->check(CLI::IsMember({"one", "two"}));
    serve->add_option("model", kind_, "Model");
    serve->add_option("--secret", kind_, "Not shown")->group("");
    CLI::App* bench = program_.add_subcommand("bench", "Measure");
    bench->add_subcommand("ops", "Operators")->add_flag("--fast", fast_, "It's fast");
  }

  CLI::App program_;
  int port_ = 0;
  std::string kind_;
  bool fast_ = false;
};

TEST_F(Completion, TablesHoldCommandsFlagsAndValues) {
  const std::string script = completion_script(program_, "bash");
  EXPECT_THAT(script, HasSubstr("octavo_commands[octavo]='serve bench'"));
  EXPECT_THAT(script, HasSubstr("octavo_commands[octavo_bench]='ops'"));
  EXPECT_THAT(script, HasSubstr("octavo_values[octavo_serve_--kind]='one two'"));
  EXPECT_THAT(script, HasSubstr("octavo_values[octavo_serve_-p]='file'"));
  EXPECT_THAT(script, HasSubstr("octavo_flags[octavo_bench_ops]='--help -h --fast'"));
  EXPECT_THAT(script, Not(HasSubstr("--secret")));
  EXPECT_THAT(completion_script(program_, "zsh"), testing::StartsWith("#compdef octavo\n"));
}

TEST_F(Completion, FishKnowsWhatLeadsThere) {
  const std::string script = completion_script(program_, "fish");
  EXPECT_THAT(script,
              HasSubstr("complete -c octavo -n '__fish_use_subcommand' -f -a serve -d 'Serve a model'\n"));
  EXPECT_THAT(
      script,
      HasSubstr("-n '__fish_seen_subcommand_from bench; and not __fish_seen_subcommand_from ops' -f -a ops"));
  EXPECT_THAT(
      script,
      HasSubstr("-n '__fish_seen_subcommand_from serve' -l kind -r -f -a 'one two' -d 'Whose kind'\n"));
  EXPECT_THAT(script, HasSubstr("-l fast -d 'It\\'s fast'\n"));
}

}  // namespace
}  // namespace octavo
