#include "openai/session_path.h"

#include <gtest/gtest.h>

namespace octavo::openai {
namespace {

TEST(SessionPath, IdsMayContainSlashes) {
  EXPECT_EQ(parse_session_path("/v1/sessions").id, "");
  EXPECT_EQ(parse_session_path("/v1/sessions/s").id, "s");
  EXPECT_EQ(parse_session_path("/v1/sessions/a/b/pin").id, "a/b");
  EXPECT_EQ(parse_session_path("/v1/sessions/a/b/pin").action, "pin");
  EXPECT_EQ(parse_session_path("/v1/sessions/pin").id, "pin");
  EXPECT_EQ(parse_session_path("/v1/sessions//v1/sessions/x").id, "/v1/sessions/x");
  EXPECT_EQ(parse_session_path("/gate/v1/sessions/s/export").action, "export");
}

TEST(SessionPath, EncodesIds) { EXPECT_EQ(encoded_session_id("a/b c&d-1_é"), "a%2Fb%20c%26d-1_%C3%A9"); }

}  // namespace
}  // namespace octavo::openai
