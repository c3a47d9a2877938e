#include "serve/openai/session_fields.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace octavo::openai {
namespace {

struct ReadHints {
  Result<SessionHints> hints;
  std::vector<std::string> unknown;
};

ReadHints read_hints(std::string_view text) {
  const boost::json::object body = boost::json::parse(text).as_object();
  Fields fields(body);
  std::vector<std::string> unknown;
  auto hints = read_session(fields, unknown);
  for (const std::string& name : fields.unread()) ADD_FAILURE() << name << " is not read";
  return {std::move(hints), std::move(unknown)};
}

SessionUse use_of(std::string_view text) { return read_hints(text).hints.value().use; }
std::string wrong_field(std::string_view text) { return read_hints(text).hints.error().field; }

TEST(SessionFields, NameASession) {
  EXPECT_EQ(use_of("{}").key.id, "");
  EXPECT_EQ(use_of(R"({"prompt_cache_key": "k"})").key.id, "k");
  EXPECT_EQ(use_of(R"({"prompt_cache_key": "k", "session_id": "s"})").key.id, "s");
  EXPECT_EQ(use_of(R"({"nvext": {"session_id": "n"}})").key.id, "n");
  EXPECT_EQ(use_of(R"({"session_id": ""})").key.id, "");
  EXPECT_EQ(wrong_field(R"({"session_id": 7})"), "session_id");
  EXPECT_EQ(wrong_field(fmt::format(R"({{"prompt_cache_key": "{}"}})", std::string(257, 'x'))),
            "prompt_cache_key");
}

TEST(SessionFields, ReadAnthropicsCacheControl) {
  EXPECT_EQ(use_of(R"({"cache_control": {"type": "ephemeral"}})").ttl_s, 300);
  EXPECT_EQ(use_of(R"({"cache_control": {"type": "ephemeral", "ttl": "1h"}})").ttl_s, 3600);
  EXPECT_EQ(wrong_field(R"({"cache_control": {"type": "forever"}})"), "cache_control.type");
  EXPECT_EQ(wrong_field(R"({"cache_control": {"type": "ephemeral", "ttl": "2h"}})"), "cache_control.ttl");
  EXPECT_EQ(wrong_field(R"({"cache_control": true})"), "cache_control");
}

TEST(SessionFields, ReadTheHintsOfVllmAndSglang) {
  const SessionUse pin = use_of(
      R"({"kv_hints": {"protocol_version": "0.1", "message_id": "m", "actions": [{"action_id": "a", "action_type": "Pin",
          "action_version": 1, "payload": {"session_id": "s", "ttl_seconds": 60, "priority": 3}}]}})");
  EXPECT_EQ(pin.key.id, "s");
  EXPECT_EQ(pin.ttl_s, 60);
  EXPECT_EQ(pin.priority, 3);
  EXPECT_TRUE(pin.pin);
  EXPECT_TRUE(use_of(R"({"kv_hints": {"actions": [{"action_type": "demote"}]}})").demote);
  EXPECT_EQ(use_of(R"({"kv_hints": {"actions": [{"action_type": "release", "payload": {}}]}})").ttl_s, 1);
  EXPECT_FALSE(use_of(R"({"kv_hints": {"actions": [{"action_type": "retain"}]}})").pin);
  const ReadHints shared = read_hints(R"({"kv_hints": {"actions": [{"action_type": "share"}]}})");
  EXPECT_EQ(shared.unknown, std::vector<std::string>{R"(kv_hints.actions[0].action_type="share")"});
  EXPECT_EQ(wrong_field(R"({"kv_hints": {"actions": [7]}})"), "kv_hints.actions[0]");
  EXPECT_EQ(wrong_field(R"({"kv_hints": {"actions": [{}]}})"), "kv_hints.actions[0].action_type");
  EXPECT_EQ(wrong_field(R"({"kv_hints": {"actions": [{"action_type": "pin", "payload": {"ttl": 0}}]}})"),
            "kv_hints.actions[0].payload.ttl");
}

TEST(SessionFields, ReadDynamosAgentHints) {
  const ReadHints read = read_hints(
      R"({"nvext": {"agent_hints": {"priority": 50, "strict_priority": 1, "osl": 1024, "speculative_prefill": true,
          "other": 1}, "cache_control": {"type": "ephemeral", "ttl": "1h"}}})");
  ASSERT_TRUE(read.hints);
  EXPECT_EQ(read.hints->use.priority, kSessionPriorityMax);
  EXPECT_EQ(read.hints->request_priority, 50);
  EXPECT_EQ(read.hints->use.ttl_s, 3600);
  EXPECT_EQ(read.unknown, std::vector<std::string>{"nvext.agent_hints.other"});
  EXPECT_EQ(wrong_field(R"({"nvext": {"agent_hints": {"osl": 0}}})"), "nvext.agent_hints.osl");
  EXPECT_EQ(wrong_field(R"({"nvext": {"agent_hints": {"speculative_prefill": 1}}})"),
            "nvext.agent_hints.speculative_prefill");
}

}  // namespace
}  // namespace octavo::openai
