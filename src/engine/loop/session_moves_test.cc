// Tests the export of a session from one engine and its import at another.
#include <future>

#include "engine/load/load.h"
#include "engine/testing/answers.h"
#include "engine/testing/rig.h"

namespace octavo {
namespace {

Result<SessionInfo> move_command(Engine& engine, SessionCommand command) {
  std::promise<Result<std::vector<SessionInfo>>> told;
  engine.command_sessions(std::move(command), [&](auto result) { told.set_value(std::move(result)); });
  TRY(std::vector<SessionInfo> sessions, told.get_future().get());
  return std::move(sessions.front());
}

Result<std::vector<std::string>> export_all(Engine& engine, const std::string& id) {
  std::vector<std::string> parts;
  int first = 0;
  do {
    TRY(SessionInfo info,
        move_command(engine, {.verb = SessionVerb::export_part, .key = {"o", id}, .first = first}));
    parts.push_back(std::move(info.part));
    first = info.next_piece;
  } while (first > 0);
  return parts;
}

Result<SessionInfo> import_one(Engine& engine, const std::string& part, const std::string& id = "s") {
  return move_command(engine, {.verb = SessionVerb::import_part, .key = {"o", id}, .part = part});
}

// Splits a part, as if the session were large.
std::vector<std::string> split(const std::string& part, int pieces_max) {
  const SessionPart whole = read_session_part(part).value();
  std::vector<std::string> parts;
  for (int at = 0; at < whole.header.count; at += pieces_max) {
    SessionPartHeader header = whole.header;
    header.first += at;
    header.count = std::min(pieces_max, whole.header.count - at);
    const std::size_t stride = header.format.stride();
    const auto blocks = whole.blocks.subspan(static_cast<std::size_t>(at) * stride,
                                             static_cast<std::size_t>(header.count) * stride);
    parts.push_back(
        begin_session_part(header).append(reinterpret_cast<const char*>(blocks.data()), blocks.size()));
  }
  return parts;
}

int cached_turn(Rig& rig, const std::vector<TokenId>& prompt, const std::string& session) {
  Request request = request_for(prompt, 4);
  if (!session.empty()) request.session = SessionUse{.key = {"o", session}, .priority = 1};
  auto sink = std::make_shared<Recorder>();
  EXPECT_TRUE(rig.engine->submit(std::move(request), sink));
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().tokens, expected(prompt, 4));
  return sink->record().ends.at(0).cached_tokens;
}

class SessionMoves : public EngineModes {};
INSTANTIATE_TEST_SUITE_P(Modes, SessionMoves, EngineModes::all(), EngineModes::name);

TEST_P(SessionMoves, OnlyEnginesOfTheSameModelExchangeSessions) {
  Rig from({.mode = GetParam()}), other({.mode = GetParam(), .fingerprint = "other"}),
      unknown({.mode = GetParam(), .fingerprint = ""});
  const std::vector<TokenId> prompt = some_prompt(1, 200);
  for (Rig* rig : {&from, &unknown}) cached_turn(*rig, prompt, "s");
  const auto parts = export_all(*from.engine, "s").value();
  const auto refused = import_one(*other.engine, parts[0]);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the models are simulated and other"), std::string::npos);
  EXPECT_EQ(import_one(*unknown.engine, parts[0]).error().code, ErrorCode::unsupported);
  EXPECT_EQ(export_all(*unknown.engine, "s").error().code, ErrorCode::unsupported);
}

TEST_P(SessionMoves, TheOtherEngineFindsThePrompt) {
  Rig from({.mode = GetParam()}), to({.mode = GetParam()});
  const std::vector<TokenId> prompt = some_prompt(1, 200);
  cached_turn(from, prompt, "s");
  const auto parts = export_all(*from.engine, "s").value();
  ASSERT_EQ(parts.size(), 1u);
  const std::vector<std::string> small = split(parts[0], 5);
  ASSERT_EQ(small.size(), 3u);
  for (std::size_t i = 0; i < small.size(); ++i) {
    const auto info = import_one(*to.engine, small[i], "t");
    ASSERT_TRUE(info) << info.error().message;
    EXPECT_EQ(info->importing, i < 2);
    EXPECT_EQ(info->tokens, i < 2 ? 0 : 192);
  }
  EXPECT_EQ(move_command(*to.engine, {.key = {"o", "t"}})->priority, 1);
  EXPECT_EQ(cached_turn(to, prompt, "t"), 192);
  for (Rig* rig : {&from, &to}) {
    ASSERT_TRUE(
        move_command(*rig->engine, {.verb = SessionVerb::release, .key = {"o", rig == &to ? "t" : "s"}}));
    rig->expect_empty();
  }
}

TEST(SessionMove, PartsComeInTheirOrder) {
  Rig from, to;
  cached_turn(from, some_prompt(1, 200), "s");
  const auto parts = split(export_all(*from.engine, "s").value()[0], 4);
  EXPECT_EQ(import_one(*to.engine, parts[1]).error().code, ErrorCode::resource_exhausted) << "no first part";
  ASSERT_TRUE(import_one(*to.engine, parts[0]));
  EXPECT_EQ(import_one(*to.engine, parts[2]).error().field, "file");
  for (const SessionVerb verb : {SessionVerb::pin, SessionVerb::fork, SessionVerb::export_part})
    EXPECT_EQ(move_command(*to.engine, {.verb = verb, .key = {"o", "s"}, .fork_id = "f"}).error().code,
              ErrorCode::resource_exhausted);
  ASSERT_TRUE(import_one(*to.engine, parts[1]));
  to.engine->reset_prefix_cache();
  EXPECT_FALSE(import_one(*to.engine, parts[2])) << "the blocks are gone";
  for (const std::string& part : parts)
    ASSERT_TRUE(import_one(*to.engine, part)) << "again from the first part";
  EXPECT_EQ(cached_turn(to, some_prompt(1, 200), "s"), 192);
}

TEST(SessionMove, DamageAndOtherModelsAreRefusedByName) {
  Rig from, to;
  cached_turn(from, some_prompt(1, 100), "s");
  const std::string part = export_all(*from.engine, "s").value()[0];
  const SessionPart read = read_session_part(part).value();
  std::string bad = part;
  char& content = bad[part.size() - read.header.format.stride() + sizeof(BlockHeader)];
  content = static_cast<char>(content ^ 1);
  const auto damaged = import_one(*to.engine, bad);
  EXPECT_EQ(damaged.error().field, "file");
  EXPECT_NE(damaged.error().message.find("is damaged: piece 5"), std::string::npos)
      << damaged.error().message;
  SessionPartHeader header = read.header;
  header.format.fingerprint = "other";
  const auto other =
      import_one(*to.engine, begin_session_part(header).append(part, part.size() - read.blocks.size()));
  EXPECT_NE(other.error().message.find("the models are other and"), std::string::npos)
      << other.error().message;
  header = read.header;
  header.tokens.resize(header.tokens.size() - 1);
  EXPECT_FALSE(
      import_one(*to.engine, begin_session_part(header).append(part, part.size() - read.blocks.size())));
  EXPECT_EQ(move_command(*to.engine, {.key = {"o", "s"}}).error().code, ErrorCode::not_found);
  EXPECT_EQ(cached_turn(to, some_prompt(1, 100), ""), 0);
}

TEST(SessionMove, ARequestTakesTheBlocksOfAnUnfinishedImport) {
  Rig from, to({.num_blocks = 34});
  cached_turn(from, some_prompt(1, 300), "s");
  const auto parts = split(export_all(*from.engine, "s").value()[0], 4);
  ASSERT_TRUE(import_one(*to.engine, parts[0]));
  cached_turn(to, some_prompt(2, 480), "");
  EXPECT_EQ(import_one(*to.engine, parts[1]).error().code, ErrorCode::resource_exhausted);
  Rig small({.num_blocks = 10, .max_model_len = 128});
  EXPECT_EQ(import_one(*small.engine, parts[0]).error().code, ErrorCode::resource_exhausted);
}

// Models whose layers have windows or recurrent states, and quantised caches.
struct MovedModel {
  std::string model, kv_cache_dtype = "auto";
};
class SessionMovesOfModels : public testing::TestWithParam<MovedModel> {};

TEST_P(SessionMovesOfModels, OutputsHaveTheSameBits) {
  EngineOptions options;
  options.model.dir = "tests/data/models/" + GetParam().model;
  options.device.type = "cpu";
  options.device.threads = 2;
  options.model.max_model_len = 160;
  options.cache.memory_bytes = 4 << 20;
  options.cache.mamba_block_size = 16;
  options.schedule.max_num_seqs = 8;
  options.cache.dtype = GetParam().kv_cache_dtype;
  options.sessions.imports = true;
  const auto from = load_engine(options).value(), to = load_engine(options).value();
  Request first = request_of(8, from->info().vocab_size), second = first;
  first.session = second.session = SessionUse{.key = {"o", "s"}};
  const CollectedAnswer answer = answers_to(*from, {first})[0];
  second.prompt.insert(second.prompt.end(), answer.tokens.begin(), answer.tokens.end());
  const auto parts = export_all(*from, "s").value();
  const CollectedAnswer wanted = answers_to(*from, {second})[0];
  for (const std::string& part : parts)
    for (const std::string& each : split(part, 3)) ASSERT_TRUE(import_one(*to, each));
  EXPECT_EQ(answers_to(*to, {second})[0], wanted);
  const auto session = move_command(*to, {.key = {"o", "s"}});
  EXPECT_GE(session->cached_tokens, 48) << "of " << session->prompt_tokens;
}

INSTANTIATE_TEST_SUITE_P(Models, SessionMovesOfModels,
                         testing::Values(MovedModel{"llama"}, MovedModel{"qwen3", "int8_per_token_head"},
                                         MovedModel{"gemma3"}, MovedModel{"qwen3_5"}, MovedModel{"mamba2"}),
                         [](const auto& test) { return test.param.model; });

}  // namespace
}  // namespace octavo
