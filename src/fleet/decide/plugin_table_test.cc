#include "fleet/decide/plugin_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

TEST(PluginTable, AnUnknownTypeGetsTheNearestNames) {
  using testing::StartsWith;
  EXPECT_EQ(unknown_plugin("plugins[0].type", "x").error().field, "plugins[0].type");
  EXPECT_THAT(unknown_plugin("type", "queue-scorerr").error().message,
              StartsWith("the plugin type \"queue-scorerr\" does not exist; similar types: queue-scorer, "));
  EXPECT_THAT(unknown_plugin("type", "openai-parsr", {"openai-parser"}).error().message,
              StartsWith("the plugin type \"openai-parsr\" does not exist; similar types: openai-parser, "));
}

}  // namespace
}  // namespace octavo::fleet
