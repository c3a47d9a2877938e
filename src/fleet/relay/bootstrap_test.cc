#include "fleet/relay/bootstrap.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace octavo::fleet {
namespace {

std::string with_room(std::string_view body, const Bootstrap& bootstrap = {"h", 8998, 7}) {
  return bootstrap_body(body, boost::json::parse(body).as_object(), bootstrap).value();
}

TEST(Bootstrap, OnePromptHasOneRoom) {
  for (const std::string rest :
       {R"("prompt":"a"})", R"("prompt":[1,2]})", R"("input_ids":[1]})", R"("messages":[{}]})"})
    EXPECT_EQ(with_room("{" + rest),
              R"({"bootstrap_host":"h","bootstrap_port":8998,"bootstrap_room":7,)" + rest);
}

TEST(Bootstrap, EachPromptOfAListHasARoom) {
  for (const std::string rest : {R"("prompt":["a","b"]})", R"("prompt":[[1],[2]]})", R"("text":["a","b"]})",
                                 R"("input_ids":[[1],[2]]})"})
    EXPECT_EQ(with_room("{" + rest), R"({"bootstrap_host":["h","h"],"bootstrap_port":[8998,8998],)"
                                     R"("bootstrap_room":[7,8],)" +
                                         rest);
  EXPECT_EQ(with_room(R"({"prompt":["a"]})"), R"({"bootstrap_host":["h"],"bootstrap_port":[8998],)"
                                              R"("bootstrap_room":[7],"prompt":["a"]})");
}

TEST(Bootstrap, RoomsFitIntoSignedNumbers) {
  EXPECT_TRUE(with_room("{\"text\":\"a\"}", {"h", 0, ~std::uint64_t{0}})
                  .starts_with(
                      R"({"bootstrap_host":"h","bootstrap_port":null,"bootstrap_room":9223372036854775807)"));
}

TEST(Bootstrap, OnlyGenerationsAreDivided) {
  for (const char* path : {"/v1/chat/completions", "/v1/completions", "/generate"})
    EXPECT_TRUE(is_divided(path));
  for (const char* path : {"/v1/embeddings", "/tokenize", "/v1/models"}) EXPECT_FALSE(is_divided(path));
}

}  // namespace
}  // namespace octavo::fleet
