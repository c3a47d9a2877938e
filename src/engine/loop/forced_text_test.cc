// Tests that text which a grammar forces is appended without sampling, in every mode of the engine.
#include "engine/testing/guided_rig.h"

namespace octavo {
namespace {

class ForcedText : public EngineModes {};
INSTANTIATE_TEST_SUITE_P(Modes, ForcedText, EngineModes::all(), EngineModes::name);

TEST_P(ForcedText, IsAppendedAtOnce) {
  const MakeVocabulary vocabulary = letters(spelled);
  Rig rig(tight(GetParam(), vocabulary));
  const auto grammar = regex("([a-c]longforcedtext[x-z]{2}andmoreofit){1,5}");
  const bool jumps = GetParam() != Mode::asynchronous;  // while a step is in flight, every token is sampled
  std::vector<std::pair<std::shared_ptr<Recorder>, std::vector<TokenId>>> all;
  for (unsigned i = 0; i < 24; ++i) {
    const int count = 20 + static_cast<int>(i % 5) * 30;
    Request request = request_for(some_prompt(i, 5 + static_cast<int>(i * 37 % 150)), count);
    request.eos_ids = {kEndOfText};
    request.grammar = grammar;
    const auto& entry =
        all.emplace_back(std::make_shared<Recorder>(),
                         expected_under(compiled(grammar, vocabulary), request.prompt, count, jumps));
    rig.learn(request.prompt, entry.second);
    ASSERT_TRUE(rig.engine->submit(std::move(request), entry.first).has_value());
  }
  std::int64_t tokens = 0;
  for (const auto& [sink, expectation] : all) {
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().tokens, expectation);
    tokens += static_cast<std::int64_t>(expectation.size());
  }
  rig.expect_empty();  // after the last output, the engine updates its counters
  const std::int64_t sampled = rig.engine->own_stats().grammars.masks;
  if (jumps) {
    EXPECT_LT(sampled, tokens / 2);
  } else {
    EXPECT_GE(sampled, tokens);
  }
}

// Forced text has several spellings. A draft token before it must not change which one is chosen.
TEST_P(ForcedText, IsSpelledTheSameAfterDraftTokens) {
  const MakeVocabulary vocabulary = [] {
    std::vector<std::string> tokens;
    for (int id = 0; id < kVocab; ++id) {
      const char last = static_cast<char>('a' + id % 26);
      std::string first = id < 26 ? "" : std::string(1, static_cast<char>('a' + id / 26 - 1));
      if (id >= 27 * 26) first = std::to_string(id);
      tokens.push_back(first + last);
    }
    return grammar::Vocabulary::make(std::move(tokens), {}, {kEndOfText}, 1 << 20, spelled);
  };
  if (GetParam() == Mode::asynchronous) GTEST_SKIP() << "every token is sampled";
  Rig rig(tight(GetParam(), vocabulary));
  const auto grammar = regex("([a-c]{24}longforcedtext[x-z]{6}){1,3}");
  std::vector<std::pair<std::shared_ptr<Recorder>, std::vector<TokenId>>> all;
  for (unsigned i = 0; i < 24; ++i) {
    Request request = request_for(some_prompt(i, 5 + static_cast<int>(i * 37 % 150)), 80);
    request.eos_ids = {kEndOfText};
    request.grammar = grammar;
    const auto& entry =
        all.emplace_back(std::make_shared<Recorder>(),
                         expected_under(compiled(grammar, vocabulary), request.prompt, 80, true));
    rig.learn(request.prompt, entry.second);
    ASSERT_TRUE(rig.engine->submit(std::move(request), entry.first).has_value());
  }
  for (const auto& [sink, expectation] : all) {
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().tokens, expectation);
  }
  EXPECT_GE(rig.accepted_drafts(), rig.speculates() ? 1 : 0);
  rig.expect_empty();
}

}  // namespace
}  // namespace octavo
