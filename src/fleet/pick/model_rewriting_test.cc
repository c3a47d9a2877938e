#include "fleet/pick/model_rewriting.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

TEST(WithModel, ChangesNothingElse) {
  EXPECT_EQ(with_model(R"({"model":"a","prompt":"x"})", "b"), R"({"model":"b","prompt":"x"})");
  EXPECT_EQ(with_model(" { \"x\" : [1, {\"model\": \"a\"}] , \"model\" : \"a\\\"q\" , \"y\": -1.5e3 } ", "b"),
            " { \"x\" : [1, {\"model\": \"a\"}] , \"model\" : \"b\" , \"y\": -1.5e3 } ");
  EXPECT_EQ(with_model(R"({"a":"\"model\":\"a\"","t":true,"model":"a","model":"c"})", "b\"b"),
            R"({"a":"\"model\":\"a\"","t":true,"model":"b\"b","model":"b\"b"})");
  EXPECT_EQ(with_model("{}", "b"), "{}");
  EXPECT_EQ(with_model(R"({"model":)", "b"), R"({"model":"b")") << "no valid object, but no harm";
}

TEST(ModelRestorer, PutsTheNameBackWhereverTheTextIsCut) {
  const std::string answer = R"(data: {"id":"1","model": "tuned-v2","text":"\"model\":","model":"tuned-v2"})";
  const std::string wanted = R"(data: {"id":"1","model": "m","text":"\"model\":","model":"m"})";
  for (std::size_t cut = 0; cut <= answer.size(); ++cut) {
    ModelRestorer restorer("tuned-v2", "m");
    std::string got = restorer.push(answer.substr(0, cut), false);
    got += restorer.push(answer.substr(cut), true);
    EXPECT_EQ(got, wanted) << cut;
  }
}

TEST(ModelRestorer, OtherModelsStay) {
  ModelRestorer restorer("b", "a");
  EXPECT_EQ(restorer.push(R"({"model":"bb","model" :"b"})", true), R"({"model":"bb","model" :"b"})");
  EXPECT_FALSE(ModelRestorer().active());
}

}  // namespace
}  // namespace octavo::fleet
