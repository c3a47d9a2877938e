#include "fleet/pick/request_attribute.h"

#include <boost/json/parse.hpp>

#include "fleet/pick/test_config.h"
#include "fleet/pick/test_processor.h"

namespace octavo::fleet {
namespace {

const boost::json::object kUsage =
    boost::json::parse(
        R"({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}})")
        .get_object();

double number(std::string_view text) {
  const auto parsed = UsageExpression::parse(text);
  EXPECT_TRUE(parsed) << text << ": " << (parsed ? "" : parsed.error().message);
  return parsed ? parsed->number(kUsage).value_or(-1) : -2;
}

TEST(UsageExpression, ComputesAsCel) {
  EXPECT_EQ(number("usage.prompt_tokens + usage.completion_tokens"), 14);
  EXPECT_EQ(number("1 + 2 * 3 - 4 / 2"), 5);
  EXPECT_EQ(number("(1 + 2) * -3 + 10 % 4"), -7);
  EXPECT_EQ(number("usage.prompt_tokens_details.cached_tokens"), 3);
  EXPECT_EQ(number("(has(usage.prompt_tokens) ? usage.prompt_tokens : 0) + (has(usage.x) ? usage.x : 1)"),
            11);
  EXPECT_EQ(number("has(usage.a.b) || usage.prompt_tokens >= 10 && !false ? int(2.9) : 1"), 2);
  EXPECT_EQ(number("\n usage.prompt_tokens\n"), 10);
  EXPECT_EQ(number("usage.missing"), -1) << "no value";
  EXPECT_EQ(number("usage.missing > 1 || true ? 5 : 6"), 5) << "one side decides";
  EXPECT_EQ(number("usage.prompt_tokens > 1"), -1) << "no number";
  EXPECT_EQ(number("1 == 1 ? usage.prompt_tokens < usage.completion_tokens ? 1 : 2 : 3"), 2);
}

TEST(UsageExpression, MistakesAreRefused) {
  for (const std::string& text :
       std::vector<std::string>{"", "usage", "usage.", "1 +", "1 2", "(1", "has(1)", "other.x", "a(1)",
                                "1 ? 2", "usage.x = 1", std::string(1000, '('), std::string(1000, '-') + "1"})
    EXPECT_FALSE(UsageExpression::parse(text)) << text.substr(0, 20);
}

constexpr const char* kReporter = R"(
plugins:
- type: queue-scorer
- name: cost
  type: request-attribute-reporter
  parameters:
    attributes:
    - key: {name: x-cost}
      expression: usage.prompt_tokens + usage.completion_tokens
      condition: has(usage.prompt_tokens) && has(usage.completion_tokens)
)";

TEST_F(ProcessorTest, AnAttributeOfTheUsageIsReportedWithTheAnswersEnd) {
  begin(1, {.attributes = read(kReporter).attributes});
  const auto reported = [&](std::string_view body) -> double {
    next();
    EXPECT_EQ(destination(), "10.0.0.1:8000");
    EXPECT_TRUE(send(response_body(body, false)));
    EXPECT_FALSE(answers_.at(0).has_dynamic_metadata());
    EXPECT_TRUE(send(response_body("", true)));
    if (!answers_.at(0).has_dynamic_metadata()) return -1;
    return answers_[0]
        .dynamic_metadata()
        .fields()
        .at("envoy.lb")
        .struct_value()
        .fields()
        .at("x-cost")
        .number_value();
  };
  EXPECT_EQ(reported(R"({"usage": {"prompt_tokens": 10, "completion_tokens": 4}})"), 14);
  EXPECT_EQ(reported("data: {\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":7}}\n\ndata: [DONE]\n\n"),
            10);
  EXPECT_EQ(reported(R"({"usage": {"prompt_tokens": 10}})"), -1);
  EXPECT_EQ(reported("no usage"), -1);
}

TEST(RequestAttribute, MistakesAreNamed) {
  const auto field = [](const std::string& parameters) {
    const auto refused = parse_endpoint_picker_config(
        "plugins: [{type: request-attribute-reporter, parameters: " + parameters + "}]", true);
    return refused ? "" : refused.error().field;
  };
  const std::string where = "plugins[0].parameters.attributes";
  EXPECT_EQ(field("{attributes: []}"), where);
  EXPECT_EQ(field("{attributes: [{key: {}, expression: '1'}]}"), where + "[0].key.name");
  EXPECT_EQ(field("{attributes: [{key: {name: a}, expression: '1 +'}]}"), where + "[0].expression");
  EXPECT_EQ(field("{attributes: [{key: {name: a}, expression: '1', condition: 'x'}]}"),
            where + "[0].condition");
}

}  // namespace
}  // namespace octavo::fleet
