// Tests grammars in every mode of the engine.
#include <future>
#include <new>

#include "engine/testing/guided_rig.h"

namespace octavo {
namespace {

class GuidedEngine : public EngineModes {};
INSTANTIATE_TEST_SUITE_P(Modes, GuidedEngine, EngineModes::all(), EngineModes::name);

TEST_P(GuidedEngine, AnswersFollowTheirGrammars) {
  Rig rig(tight(GetParam()));
  const std::vector<std::optional<grammar::GrammarSource>> grammars{
      std::nullopt, regex("([a-f]{3,30}|x[0-9]+y){1,4}z"), regex("q{40}"), regex("[a-z0-9]{0,9}")};
  struct Expectation {
    std::shared_ptr<Recorder> sink = std::make_shared<Recorder>();
    std::vector<TokenId> tokens;
  };
  std::vector<Expectation> all;
  for (unsigned i = 0; i < 48; ++i) {
    Request request = request_for(some_prompt(i, 5 + static_cast<int>(i * 37 % 150)), 90);
    request.eos_ids = {kEndOfText};
    request.grammar = grammars[i % 4];
    request.sampling.ignore_eos = i % 3 == 0;  // the end of the grammar ends the output in any case
    Expectation e;
    e.tokens = request.grammar ? expected_under(compiled(*request.grammar), request.prompt, 90)
                               : expected(request.prompt, 90);
    if (!request.grammar && !request.sampling.ignore_eos)
      if (const auto end = std::ranges::find(e.tokens, kEndOfText); end != e.tokens.end())
        e.tokens.erase(end + 1, e.tokens.end());
    rig.learn(request.prompt, e.tokens);
    ASSERT_TRUE(rig.engine->submit(std::move(request), e.sink).has_value());
    all.push_back(std::move(e));
  }
  for (Expectation& e : all) {
    e.sink->wait_ended(1);
    const Recorder::Record record = e.sink->record();
    EXPECT_EQ(record.tokens, e.tokens);
    EXPECT_EQ(record.ends[0].finished,
              record.tokens.size() == 90 ? FinishReason::length : FinishReason::stop);
  }
  EXPECT_GT(rig.engine->own_stats().grammars.masks, 300);
  EXPECT_GE(rig.accepted_drafts(), rig.speculates() ? 100 : 0);
  rig.expect_empty();
}

TEST_P(GuidedEngine, AGrammarMayBeginBehindAToken) {
  Rig rig(tight(GetParam()));
  const auto grammar = regex("[a-f0-9]{3,30}z");
  std::vector<std::pair<std::shared_ptr<Recorder>, std::vector<TokenId>>> all;
  for (unsigned i = 0; i < 16; ++i) {
    Request request = request_for(some_prompt(i, 5 + static_cast<int>(i * 37 % 150)), 90);
    request.sampling.ignore_eos = true;
    // Tokens are unconstrained until `mark` occurs. It never occurs in the last request.
    std::vector<TokenId> tokens = expected(request.prompt, 90);
    const TokenId mark = i < 15 ? tokens[i * 3] : TokenId{kVocab};
    request.grammar = grammar;
    request.grammar_after = mark;
    if (const auto at = std::ranges::find(tokens, mark); at != tokens.end()) {
      tokens.erase(at + 1, tokens.end());
      std::vector<TokenId> context = request.prompt;
      context.insert(context.end(), tokens.begin(), tokens.end());
      std::ranges::copy(expected_under(compiled(grammar), context, 90 - static_cast<int>(tokens.size())),
                        std::back_inserter(tokens));
    }
    rig.learn(request.prompt, tokens);
    all.emplace_back(std::make_shared<Recorder>(), std::move(tokens));
    ASSERT_TRUE(rig.engine->submit(std::move(request), all.back().first).has_value());
  }
  for (const auto& [sink, tokens] : all) {
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().tokens, tokens);
  }
  rig.expect_empty();
}

// Before grammar_after, the grammar neither bans nor requires the end of the text.
TEST_P(GuidedEngine, TheTextMayEndBeforeItsGrammarBegins) {
  Rig rig(tight(GetParam()));
  const auto grammar = regex("[a-f0-9]{3,30}z");
  int tried = 0;
  for (unsigned i = 0; i < 8; ++i) {
    Request request = request_for(some_prompt(i, 5 + static_cast<int>(i * 37 % 150)), 90);
    const std::vector<TokenId> free = expected(request.prompt, 90);
    const auto first = [&](TokenId token) { return std::ranges::find(free, token) - free.begin(); };
    request.eos_ids = {free[i * 2]};
    request.grammar = grammar;
    request.grammar_after = free[40];
    const std::ptrdiff_t end = first(free[i * 2]), mark = first(free[40]);
    if (mark <= end) continue;
    ++tried;
    rig.learn(request.prompt, free);
    for (const bool ignore_eos : {false, true}) {
      request.sampling.ignore_eos = ignore_eos;
      auto sink = std::make_shared<Recorder>();
      ASSERT_TRUE(rig.engine->submit(Request(request), sink).has_value());
      sink->wait_ended(1);
      const Recorder::Record record = sink->record();
      const std::ptrdiff_t count = ignore_eos ? mark + 1 : end + 1;
      ASSERT_GE(std::ssize(record.tokens), count);
      EXPECT_TRUE(std::ranges::equal(std::span(record.tokens).first(static_cast<std::size_t>(count)),
                                     std::span(free).first(static_cast<std::size_t>(count))));
      if (ignore_eos) {
        EXPECT_GT(std::ssize(record.tokens), count);
      } else {
        EXPECT_EQ(std::ssize(record.tokens), count);
        EXPECT_EQ(record.ends[0].finished, FinishReason::stop);
      }
    }
  }
  EXPECT_GE(tried, 4);
  rig.expect_empty();
}

// The masks of an ambiguous grammar take longer as the text grows. No step waits for these masks, and the
// outputs stay the same.
TEST_P(GuidedEngine, MasksThatAreNotReadyHoldUpNobodyElse) {
  const MakeVocabulary vocabulary = letters([](std::string_view text) {
    const bool plain = std::ranges::all_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
    return plain ? spelled(text) : std::vector<TokenId>{};
  });
  Rig rig(tight(GetParam(), vocabulary));
  const grammar::GrammarSource slow{.kind = grammar::GrammarKind::ebnf,
                                    .text =
                                        "root ::= (word [t-z] \"longforcedtext\"){1,5}\n"
                                        "word ::= word word word | word word | [a-c] | [a-c] [1-3]",
                                    .field = "structured_outputs.grammar"};
  const bool jumps = GetParam() != Mode::asynchronous;
  const auto reference = compiled(slow, vocabulary);
  std::vector<std::pair<std::shared_ptr<Recorder>, std::vector<TokenId>>> all;
  for (unsigned i = 0; i < 24; ++i) {
    Request request = request_for(some_prompt(i, 5 + static_cast<int>(i * 37 % 150)), 40);
    request.eos_ids = {kEndOfText};
    request.sampling.ignore_eos = true;
    if (i % 3 == 0) request.grammar = slow;
    const auto& entry = all.emplace_back(
        std::make_shared<Recorder>(), request.grammar ? expected_under(reference, request.prompt, 40, jumps)
                                                      : expected(request.prompt, 40));
    rig.learn(request.prompt, entry.second);
    ASSERT_TRUE(rig.engine->submit(std::move(request), entry.first).has_value());
  }
  for (const auto& [sink, expectation] : all) {
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().tokens, expectation);
  }
  EXPECT_GT(rig.engine->own_stats().grammars.masks_deferred, 0);
  rig.expect_empty();
}

// The client may disconnect while the mask is computed.
TEST_P(GuidedEngine, AnAnswerMayEndWhileItsMaskIsMade) {
  Rig rig(tight(GetParam()));
  int aborted = 0;  // On a busy machine, some answers may end before the abort arrives.
  for (unsigned i = 0; i < 12; ++i) {
    Request request = request_for(some_prompt(i, 20), 250);
    request.sampling.ignore_eos = true;
    request.grammar = grammar::GrammarSource{.kind = grammar::GrammarKind::ebnf,
                                             .text = "root ::= root root root | root root | [a-z] | [0-9]",
                                             .field = "structured_outputs.grammar"};
    auto sink = std::make_shared<Recorder>();
    const auto id = rig.engine->submit(std::move(request), sink);
    ASSERT_TRUE(id.has_value());
    sink->wait_outputs(1 + static_cast<int>(i));
    rig.engine->abort(*id);
    sink->wait_ended(1);
    aborted += sink->record().ends[0].finished == FinishReason::abort;
  }
  EXPECT_GT(aborted, 0);
  rig.expect_empty();
}

// Forced tokens are appended together, so they may need more blocks than are promised to the sequence.
TEST_P(GuidedEngine, ForcedTextWaitsForBlocksThatOthersHold) {
  const MakeVocabulary vocabulary = letters(spelled);
  Rig rig({.num_blocks = 12,
           .max_tokens = 256,
           .max_model_len = 192,
           .mode = GetParam(),
           .vocabulary = vocabulary});
  const std::string sentence =
      "thissentenceisforcedfromitsfirsttoitslastletterandlongerthanwhatotherslefttoitinthecache";
  const auto grammar = regex(sentence);
  std::vector<std::pair<std::shared_ptr<Recorder>, std::vector<TokenId>>> all;
  for (unsigned i = 0; i < 12; ++i) {
    Request request = request_for(some_prompt(i, 10 + static_cast<int>(i * 5)), 100);
    request.eos_ids = {kEndOfText};
    std::vector<TokenId> tokens = expected(request.prompt, 100);
    if (i % 2 == 1) {
      request.grammar = grammar;
      tokens = expected_under(compiled(grammar, vocabulary), request.prompt, 100,
                              GetParam() != Mode::asynchronous);
    } else {
      request.sampling.ignore_eos = true;
    }
    rig.learn(request.prompt, tokens);
    all.emplace_back(std::make_shared<Recorder>(), std::move(tokens));
    ASSERT_TRUE(rig.engine->submit(std::move(request), all.back().first).has_value());
  }
  for (const auto& [sink, tokens] : all) {
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().tokens, tokens);
  }
  rig.expect_empty();
}

// The error is a client error (HTTP 400), even if it occurs during generation.
TEST_P(GuidedEngine, AFirstMaskThatFailsLeavesNoRowOfThePromptBehind) {
  Rig rig({.mode = GetParam(), .vocabulary = letters()});
  auto stuck = std::make_shared<Recorder>();
  auto free = std::make_shared<Recorder>();
  Request request = request_for(some_prompt(1, 20), 50);
  request.grammar = regex("-");  // no token of the vocabulary contains "-"
  request.sampling.logprobs.output = request.sampling.logprobs.prompt = 1;
  // The first request ends when its grammar is compiled, and the second one ends in its first step.
  auto first = std::make_shared<Recorder>();
  ASSERT_TRUE(rig.engine->submit(Request(request), first).has_value());
  first->wait_ended(1);
  ASSERT_TRUE(first->record().ends[0].error);
  EXPECT_EQ(first->record().ends[0].error->code, ErrorCode::invalid_argument);
  ASSERT_TRUE(rig.engine->submit(std::move(request), stuck).has_value());
  ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(2, 20), 50), free).has_value());
  stuck->wait_ended(1);
  free->wait_ended(1);
  EXPECT_EQ(stuck->record().ends[0].finished, FinishReason::error);
  ASSERT_TRUE(stuck->record().ends[0].error);
  EXPECT_EQ(stuck->record().ends[0].error->code, ErrorCode::invalid_argument);
  EXPECT_EQ(stuck->record().ends[0].error->field, "structured_outputs.regex");
  EXPECT_EQ(free->record().tokens, expected(some_prompt(2, 20), 50));
  rig.expect_empty();
}

// No token can follow the end of the grammar, even if the output has fewer than min_tokens tokens.
TEST_P(GuidedEngine, AFinishedGrammarEndsTheAnswerBeforeMinTokens) {
  Rig rig({.mode = GetParam(), .vocabulary = letters()});
  for (const char* text : {"[a-c]", "[a-c]?"}) {
    auto sink = std::make_shared<Recorder>();
    Request request = request_for(some_prompt(1, 20), 50);
    request.eos_ids = {kEndOfText};
    request.grammar = regex(text);
    request.sampling.min_tokens = 10;
    ASSERT_TRUE(rig.engine->submit(std::move(request), sink).has_value());
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().ends[0].finished, FinishReason::stop);
    EXPECT_EQ(sink->record().tokens.size(), 1u);
  }
  rig.expect_empty();
}

TEST_P(GuidedEngine, WhatExcludesEverythingIsNamed) {
  Rig rig({.mode = GetParam(), .vocabulary = letters()});
  // the grammar and the request allow no common token
  Request banned = request_for(some_prompt(1, 20), 50);
  banned.eos_ids = {kEndOfText};
  banned.grammar = regex("[a-c]{2}");
  banned.sampling.tokens.allowed_token_ids = {5, kEndOfText};
  // the grammar allows only the end token, which min_tokens bans
  Request ends = request_for(some_prompt(1, 20), 50);
  ends.eos_ids = {kEndOfText};
  ends.sampling.tokens.allowed_token_ids = {kEndOfText};
  ends.sampling.min_tokens = 3;
  for (const Request& request : {banned, ends}) {
    auto sink = std::make_shared<Recorder>();
    ASSERT_TRUE(rig.engine->submit(Request(request), sink).has_value());
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().ends[0].finished, FinishReason::error);
    ASSERT_TRUE(sink->record().ends[0].error);
    EXPECT_EQ(sink->record().ends[0].error->code, ErrorCode::invalid_argument);
  }
  rig.expect_empty();
}

TEST_P(GuidedEngine, AGrammarWithNothingLeftEndsItsOwnRequestOnly) {
  Rig rig({.mode = GetParam(), .vocabulary = letters()});
  auto stuck = std::make_shared<Recorder>();
  auto free = std::make_shared<Recorder>();
  Request request = request_for(some_prompt(1, 20), 50);
  request.grammar = regex("a-b");
  ASSERT_TRUE(rig.engine->submit(std::move(request), stuck).has_value());
  ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(2, 20), 50), free).has_value());
  stuck->wait_ended(1);
  free->wait_ended(1);
  EXPECT_EQ(stuck->record().ends[0].finished, FinishReason::error);
  ASSERT_TRUE(stuck->record().ends[0].error);
  EXPECT_EQ(stuck->record().ends[0].error->code, ErrorCode::invalid_argument);
  EXPECT_EQ(stuck->record().ends[0].error->field, "structured_outputs.regex");
  EXPECT_EQ(free->record().tokens, expected(some_prompt(2, 20), 50));
  rig.expect_empty();
}

TEST_P(GuidedEngine, AGrammarThatCannotBeCompiledIsTheCallersError) {
  Rig rig({.mode = GetParam(), .vocabulary = letters()});
  Request request = request_for(some_prompt(1, 20), 50);
  request.sampling.n = 2;
  request.grammar = regex("(");
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(rig.engine->submit(std::move(request), sink).has_value());
  sink->wait_ended(2);
  for (int index = 0; index < 2; ++index) {
    const Recorder::Record record = sink->record(index);
    EXPECT_TRUE(record.tokens.empty());
    EXPECT_EQ(record.ends[0].finished, FinishReason::error);
    ASSERT_TRUE(record.ends[0].error);
    EXPECT_EQ(record.ends[0].error->code, ErrorCode::invalid_argument);
    EXPECT_EQ(record.ends[0].error->field, "structured_outputs.regex");
  }
  rig.expect_empty();
}

// While a grammar is compiled, steps and other requests continue. An abort does not wait for the
// compilation.
TEST_P(GuidedEngine, MemoryThatRunsOutWhileAGrammarIsCompiledEndsItsRequest) {
  const MakeVocabulary later = [fails = std::make_shared<bool>(true)]() {
    if (std::exchange(*fails, false)) throw std::bad_alloc();
    return letters()();
  };
  Rig rig(tight(GetParam(), later));
  Request request = request_for(some_prompt(1, 20), 10);
  request.eos_ids = {kEndOfText};
  request.grammar = regex("a{3}");
  for (const FinishReason reason : {FinishReason::error, FinishReason::stop}) {
    auto sink = std::make_shared<Recorder>();
    ASSERT_TRUE(rig.engine->submit(Request(request), sink).has_value());
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().ends[0].finished, reason);
    if (reason == FinishReason::error) {
      ASSERT_TRUE(sink->record().ends[0].error);
      EXPECT_EQ(sink->record().ends[0].error->code, ErrorCode::unavailable);
    }
  }
  rig.expect_empty();
}

TEST_P(GuidedEngine, OthersGoOnWhileAGrammarIsCompiled) {
  std::promise<void> go_on;
  std::shared_future<void> gate = go_on.get_future();
  Rig rig({.mode = GetParam(), .vocabulary = [gate] {
             gate.wait();
             return letters()();
           }});
  auto guided = std::make_shared<Recorder>(), left = std::make_shared<Recorder>();
  auto free = std::make_shared<Recorder>();
  Request request = request_for(some_prompt(1, 20), 50);
  request.grammar = regex("q{40}");
  const std::vector<TokenId> tokens = expected_under(compiled(*request.grammar), request.prompt, 50);
  ASSERT_TRUE(rig.engine->submit(Request(request), guided).has_value());
  const auto id = rig.engine->submit(std::move(request), left);
  ASSERT_TRUE(id.has_value());
  ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(2, 20), 50), free).has_value());
  free->wait_ended(1);
  EXPECT_EQ(free->record().tokens, expected(some_prompt(2, 20), 50));
  EXPECT_EQ(rig.engine->own_stats().requests.waiting, 2);
  EXPECT_EQ(rig.engine->own_stats().requests.deferred, 2);
  rig.engine->abort(*id);
  left->wait_ended(1);
  EXPECT_EQ(left->record().ends[0].finished, FinishReason::abort);
  go_on.set_value();
  guided->wait_ended(1);
  EXPECT_EQ(guided->record().tokens, tokens);
  rig.expect_empty();
}

// An output that another engine has started continues with the same tokens, for every length of the first
// part.
TEST_P(GuidedEngine, AnswersGoOnWhereAnotherEngineLeftThem) {
  const MakeVocabulary vocabulary = letters(spelled);
  const auto grammar = regex("[a-f0-9]{3,9}(verylongforcedtext[x-z]{2}andmore){1,3}z");
  for (const bool guided : {false, true}) {
    Request request = request_for(some_prompt(3, 37), 60);
    request.eos_ids = {kEndOfText};
    request.sampling.repetition_detection = {.max_pattern_size = 4, .min_pattern_size = 1, .min_count = 30};
    if (guided) request.grammar = grammar;
    auto whole = std::make_shared<Recorder>();
    {
      Rig rig(tight(GetParam(), vocabulary));
      ASSERT_TRUE(rig.engine->submit(Request(request), whole).has_value());
      whole->wait_ended(1);
    }
    const std::vector<TokenId> tokens = whole->record().tokens;
    ASSERT_GT(tokens.size(), 20u);
    Rig rig(tight(GetParam(), vocabulary));
    // The first part ends between two outputs, because the tokens of one output are not separated.
    std::size_t cut = 0;
    for (const std::size_t size : whole->record().output_sizes) {
      request.answers_so_far = {
          {.index = 0, .tokens = {tokens.begin(), tokens.begin() + std::ptrdiff_t(cut)}}};
      auto rest = std::make_shared<Recorder>();
      ASSERT_TRUE(rig.engine->submit(Request(request), rest).has_value());
      rest->wait_ended(1);
      std::vector<TokenId> joined(tokens.begin(), tokens.begin() + std::ptrdiff_t(cut));
      std::ranges::copy(rest->record().tokens, std::back_inserter(joined));
      EXPECT_EQ(joined, tokens) << cut << " tokens before";
      EXPECT_EQ(rest->record().ends[0].finished, whole->record().ends[0].finished);
      cut += size;
    }
    EXPECT_EQ(cut, tokens.size());
    rig.expect_empty();
  }
}

}  // namespace
}  // namespace octavo
