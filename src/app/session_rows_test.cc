#include "app/session_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

using testing::HasSubstr;

TEST(SessionRows, ReadAPage) {
  const SessionPage page = read_session_page(R"({"data": [
      {"id": "agent-7", "state": "pinned", "tokens": 70, "held_tokens": 64, "turns": 3, "age_seconds": 7300,
       "idle_seconds": 3.2, "usage": {"prompt_tokens": 200, "cached_tokens": 150}}], "has_more": true})")
                               .value();
  EXPECT_TRUE(page.more);
  EXPECT_EQ(
      session_lines(page.rows, true),
      "SESSION                              STATE       TOKENS     HELD  HIT%    TURNS      AGE     LAST\n"
      "agent-7                              pinned          70       64    75        3      2 h      3 s\n");
  EXPECT_FALSE(read_session_page(R"({"data": [], "has_more": true})")->more) << "no row to continue after";
  for (const char* body : {"", "[]", R"({"data": 1})"}) EXPECT_FALSE(read_session_page(body)) << body;
}

TEST(SessionRows, AnIdDoesNotControlTheTerminal) {
  const std::vector<SessionRow> rows{{.id = "a\x1b[2J\xc2\x9b"
                                            "1mé"}};
  EXPECT_THAT(session_lines(rows, false), testing::StartsWith("a?[2J??1mé "));
}

TEST(SessionRows, TheLargestComeFirst) {
  EXPECT_EQ(largest_sessions({}), "");
  std::vector<SessionRow> rows;
  for (int i = 0; i < 12; ++i) rows.push_back({.id = "s" + std::to_string(i), .held_tokens = i + 100.0});
  const std::string table = largest_sessions(rows);
  EXPECT_THAT(table, testing::StartsWith("\nSESSION "));
  EXPECT_LT(table.find("s11 "), table.find("s10 "));
  EXPECT_THAT(table, HasSubstr("s2 "));
  EXPECT_THAT(table, Not(HasSubstr("s1 ")));
  EXPECT_THAT(table, testing::EndsWith("\nand 2 smaller sessions\n"));
}

}  // namespace
}  // namespace octavo
