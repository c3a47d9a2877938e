// Measures the server's CPU time for each output token, and for parsing a request.
#include <benchmark/benchmark.h>

#include <boost/json/parse.hpp>

#include "serve/openai/chat_request.h"
#include "serve/openai/reply.h"
#include "serve/test_tokenizer.h"

namespace octavo::openai {
namespace {

// Converts a token to text, checks stop strings, and writes the JSON of the event.
void streamed_token(benchmark::State& state) {
  const Tokenizer tokenizer = byte_tokenizer();
  SamplingParams sampling;
  sampling.stop = {"</answer>"};
  const std::vector<TokenId> ends = {kEndToken};
  OutputProcessor processor(tokenizer, sampling, ends, StopSplitter::create(sampling.stop, false).value(),
                            {});
  const auto reply =
      chat_reply(tokenizer, {.id = "chatcmpl-0123456789abcdef", .model = "demo", .fingerprint = "x"});
  for (auto _ : state) {
    Output output;
    output.token_ids.push_back('a');
    const AnswerPart part = processor.take(std::move(output));
    benchmark::DoNotOptimize(reply->part(part, nullptr));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(streamed_token);

void parsed_chat_request(benchmark::State& state) {
  RequestRules rules;
  rules.model_names = {"demo"};
  rules.limits.vocab_size = kTestVocabulary;
  rules.max_model_len = 4096;
  const std::string body = R"({"model":"demo","temperature":0.5,"messages":[{"role":"user","content":")" +
                           std::string(static_cast<std::size_t>(state.range(0)), 'x') + "\"}]}";
  for (auto _ : state) benchmark::DoNotOptimize(parse_chat_request(parse_body(body).value(), rules).value());
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(parsed_chat_request)->Arg(100)->Arg(100'000);

}  // namespace
}  // namespace octavo::openai
