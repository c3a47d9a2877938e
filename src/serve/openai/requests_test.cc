// Tests all fields of chat and completion bodies, with their limits and errors.
#include <gtest/gtest.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "serve/openai/chat_request.h"
#include "serve/openai/completion_request.h"
#include "serve/openai/tool_choice.h"

namespace octavo::openai {
namespace {

namespace json = boost::json;

RequestRules rules() {
  RequestRules r;
  r.model_names = {"m", "alias"};
  r.limits.vocab_size = 1000;
  r.max_model_len = 512;
  return r;
}

Result<ChatRequest> chat(const std::string& fields, const RequestRules& r = rules()) {
  auto body = parse_body(R"({"messages":[{"role":"user","content":"hi"}])" +
                         (fields.empty() ? "" : "," + fields) + "}");
  if (!body) return std::unexpected(body.error());
  return parse_chat_request(*body, r);
}

Result<CompletionRequest> completion(const std::string& fields, const RequestRules& r = rules()) {
  auto body = parse_body(R"({"prompt":"hi")" + (fields.empty() ? "" : "," + fields) + "}");
  if (!body) return std::unexpected(body.error());
  return parse_completion_request(*body, r);
}

std::string chat_error(const std::string& fields) {
  const auto request = chat(fields);
  return request ? "accepted" : request.error().field;
}
std::string completion_error(const std::string& fields) {
  const auto request = completion(fields);
  return request ? "accepted" : request.error().field;
}

TEST(Requests, EveryNumericFieldRefusesItsExtremes) {
  struct Case {
    std::string field;
    std::vector<std::string> bad;
  };
  const std::vector<Case> cases = {
      {"n", {"-1", "0", "16385", "2147483647"}},
      {"temperature", {"-1", "2.1"}},
      {"top_p", {"-1", "0", "1.1"}},
      {"top_k", {"-2"}},
      {"min_p", {"-1", "1.1"}},
      {"presence_penalty", {"-2.1", "2.1"}},
      {"frequency_penalty", {"-2.1", "2.1"}},
      {"repetition_penalty", {"-1", "0"}},
      {"max_tokens", {"-1", "0"}},
      {"min_tokens", {"-1"}},
      {"prompt_logprobs", {"-2", "21"}},
      {"truncate_prompt_tokens", {"-2", "0", "513"}},
      {"priority", {"1", "-1"}},
  };
  const std::vector<std::string> everywhere = {"1e309", "-1e309", "\"x\"", "true", "[]", "{}"};
  for (const Case& c : cases) {
    std::vector<std::string> bad = c.bad;
    bad.insert(bad.end(), everywhere.begin(), everywhere.end());
    for (const std::string& value : bad) {
      EXPECT_EQ(chat_error("\"" + c.field + "\":" + value), c.field) << value;
      EXPECT_EQ(completion_error("\"" + c.field + "\":" + value), c.field) << value;
    }
    EXPECT_EQ(chat_error("\"" + c.field + "\":null"), "accepted") << c.field;
  }
  for (const std::string field :
       {"n", "top_k", "max_tokens", "min_tokens", "prompt_logprobs", "truncate_prompt_tokens"})
    for (const std::string value : {"2147483648", "9007199254740992", "9223372036854775808", "1.5"})
      EXPECT_EQ(chat_error("\"" + field + "\":" + value), field) << value;
}

TEST(Requests, TokenLists) {
  EXPECT_EQ(chat_error(R"("logit_bias":{"1000":1})"), "logit_bias");
  EXPECT_EQ(chat_error(R"("logit_bias":{"x":1})"), "logit_bias");
  EXPECT_EQ(chat_error(R"("logit_bias":{"5":"1"})"), "logit_bias");
  EXPECT_EQ(chat_error(R"("logit_bias":[1])"), "logit_bias");
  EXPECT_EQ(chat_error(R"("allowed_token_ids":[])"), "allowed_token_ids");
  EXPECT_EQ(chat_error(R"("logprobs":true,"logprob_token_ids":[])"), "logprob_token_ids");
  EXPECT_EQ(chat_error(R"("allowed_token_ids":[1000])"), "allowed_token_ids");
  EXPECT_EQ(chat_error(R"("stop_token_ids":[-1])"), "stop_token_ids");
  EXPECT_EQ(chat_error(R"("stop":"")"), "stop");
  EXPECT_EQ(chat_error(R"("stop":[1])"), "stop");
  EXPECT_EQ(chat_error(R"("bad_words":[""])"), "bad_words");
  EXPECT_EQ(chat_error(R"("logprob_token_ids":[1])"), "logprob_token_ids");
  EXPECT_EQ(chat_error(R"("cache_salt":"")"), "cache_salt");
  EXPECT_EQ(chat_error(R"("cache_salt":"a/b")"), "cache_salt");
  EXPECT_EQ(chat_error(R"("repetition_detection":{"max_pattern_size":2,"min_count":1})"),
            "repetition_detection");
}

TEST(Requests, WhatIsNotSupportedIsRefusedByName) {
  for (const std::string field : {R"("guided_json":{})", R"("watermarking":true)", R"("vllm_xargs":[1])",
                                  R"("logits_processors":["a.B"])", R"("thinking_token_budget":5)"}) {
    const std::string name = field.substr(1, field.find('"', 1) - 1);
    EXPECT_EQ(chat_error(field), name);
    EXPECT_EQ(completion_error(field), name);
  }
  EXPECT_EQ(chat_error(R"("tool_choice":"required")"), "tool_choice");
  EXPECT_EQ(chat_error(R"("tool_choice":"auto")"), "tool_choice");
  EXPECT_EQ(chat_error(R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto")"),
            "tool_choice");
  EXPECT_EQ(chat_error(R"("tools":[{"type":"function","function":{"name":"f"}}])"), "tool_choice");
  EXPECT_EQ(chat_error(R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none")"),
            "accepted");
  EXPECT_EQ(chat_error(R"("chat_template":"x")"), "chat_template");
  EXPECT_EQ(chat_error(R"("continue_final_message":true)"), "continue_final_message");
  EXPECT_EQ(chat_error(R"("continue_final_message":true,"add_generation_prompt":false)"), "accepted");
  EXPECT_EQ(completion_error(R"("suffix":"x","echo":true)"), "suffix");
  EXPECT_EQ(completion_error(R"("prompt_embeds":"x")"), "prompt_embeds") << "not enabled";
  EXPECT_EQ(completion_error(R"("best_of":2)"), "best_of");
  EXPECT_EQ(completion_error(R"("watermarking":false)"), "accepted");
}

TEST(Requests, ALengthPenaltyWithoutBeamsHasNoEffect) {
  const auto read = completion(R"("length_penalty":2.0)");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->generation.unknown_fields, std::vector<std::string>{"length_penalty"});
}

TEST(Requests, ACompletionNeedsAPromptOrEmbeddings) {
  for (const char* body :
       {R"({})", R"({"prompt":""})", R"({"prompt":[]})", R"({"prompt":null,"prompt_embeds":[]})"}) {
    const auto read = parse_completion_request(parse_body(body).value(), rules());
    ASSERT_FALSE(read) << body;
    EXPECT_EQ(read.error().message, "Either prompt or prompt_embeds must be provided and non-empty.") << body;
  }
  EXPECT_EQ(completion_error(R"("prompt_embeds":[])"), "accepted");
}

TEST(Requests, AllWrongKeysOfLogitBiasAreNamed) {
  EXPECT_EQ(completion(R"("logit_bias":{"bad1":5,"7":1,"bad2":2})").error().message,
            R"(must have token ids as keys, got "bad1", "bad2")");
}

TEST(Requests, EchoRepeatsTheAssistantsLastMessage) {
  const auto echo = [](const std::string& last, const std::string& wanted) {
    const auto body = parse_body(R"({"messages":[{"role":"user","content":"a"},)" + last + R"(],"echo":)" +
                                 wanted + R"(,"add_generation_prompt":false})");
    const auto read = parse_chat_request(*body, rules());
    return read ? read->prompt.echo : read.error().field;
  };
  EXPECT_EQ(echo(R"({"role":"assistant","content":"An apple"})", "true"), "An apple");
  EXPECT_EQ(echo(R"({"role":"assistant","content":"An apple"})", "false"), "");
  EXPECT_EQ(echo(R"({"role":"user","content":"An apple"})", "true"), "");
  EXPECT_EQ(echo(R"({"role":"assistant","content":[{"type":"text","text":"x"}]})", "true"), "echo");
}

TEST(Requests, BeamSearch) {
  const auto read = completion(R"("use_beam_search":true,"n":4,"length_penalty":0.5,"temperature":0,"top_k":3)");
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(read->generation.beam.enabled);
  EXPECT_EQ(read->generation.beam.length_penalty, 0.5);
  EXPECT_EQ(read->generation.sampling.n, 4);
  const auto error = [](const std::string& more) {
    EXPECT_EQ(chat_error("\"use_beam_search\":true," + more),
              completion_error("\"use_beam_search\":true," + more));
    return chat_error("\"use_beam_search\":true," + more);
  };
  EXPECT_EQ(error(R"("n":1)"), "accepted");
  EXPECT_EQ(error(R"("n":11)"), "n");  // 11 beams need 22 log-probabilities, but at most 20 are allowed
  EXPECT_EQ(error(R"("n":0)"), "n");
  EXPECT_EQ(error(R"("length_penalty":17)"), "length_penalty");
  EXPECT_EQ(error(R"("temperature":-1)"), "temperature");
  EXPECT_EQ(error(R"("stream":true)"), "stream");
  EXPECT_EQ(error(R"("stop":"x")"), "stop");
  EXPECT_EQ(error(R"("stop":null,"logit_bias":{},"presence_penalty":0)"), "accepted");
  EXPECT_EQ(error(R"("repetition_penalty":1.1)"), "repetition_penalty");
  EXPECT_EQ(error(R"("response_format":{"type":"json_object"})"), "response_format");
  EXPECT_EQ(error(R"("min_tokens":2)"), "min_tokens");
}

TEST(Requests, KvTransferParams) {
  const auto params = [](const std::string& text) {
    const auto request = completion(R"("kv_transfer_params":)" + text);
    EXPECT_TRUE(request.has_value());
    return request->generation.kv_transfer;
  };
  // llm-d's sidecar sends the first body to the prefill engine and the second one to the decode engine.
  EXPECT_EQ(params(R"({"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,
                       "remote_block_ids":null,"remote_host":null,"remote_port":null})"),
            KvTransferParams{.do_remote_decode = true});
  KvTransferParams all{.do_remote_prefill = true,
                       .remote_engine_id = "e",
                       .remote_request_id = "r",
                       .remote_host = "h",
                       .remote_port = 5600,
                       .remote_block_ids = {{4, 5}},
                       .remote_num_tokens = 40};
  const std::string rest = R"("do_remote_prefill":true,"do_remote_decode":false,"remote_engine_id":"e",
                              "remote_request_id":"r","remote_host":"h","remote_port":5600,"tp_size":1,
                              "remote_num_tokens":40,"transfer_mode":"pull")";
  EXPECT_EQ(params(R"({"remote_block_ids":[[4,5]],)" + rest + "}"), all);
  EXPECT_EQ(params(R"({"remote_block_ids":[4,5],)" + rest + "}"), all);
  EXPECT_EQ(params("null"), std::nullopt);
  EXPECT_EQ(params("{}"), std::nullopt);
  const auto error = [](const std::string& text) { return completion_error(R"("kv_transfer_params":)" + text); };
  EXPECT_EQ(error("7"), "kv_transfer_params");
  EXPECT_EQ(error(R"({"do_remote_decode":"yes"})"), "kv_transfer_params.do_remote_decode");
  EXPECT_EQ(error(R"({"remote_port":65536})"), "kv_transfer_params.remote_port");
  EXPECT_EQ(error(R"({"remote_host":["a"]})"), "kv_transfer_params.remote_host");
  EXPECT_EQ(error(R"({"remote_block_ids":[[1],2]})"), "kv_transfer_params.remote_block_ids");
  EXPECT_EQ(error(R"({"remote_block_ids":["1"]})"), "kv_transfer_params.remote_block_ids");
  EXPECT_EQ(error(R"({"remote_host":")" + std::string(2000, 'x') + R"("})"), "kv_transfer_params.remote_host");
}

TEST(Requests, StructuredOutputs) {
  using grammar::GrammarKind;
  const auto output = [](const std::string& fields) {
    auto request = completion(fields);
    EXPECT_TRUE(request.has_value());
    return request ? request->generation.output : std::nullopt;
  };
  EXPECT_FALSE(output("").has_value());
  EXPECT_FALSE(output(R"("response_format":{"type":"text"})").has_value());
  EXPECT_EQ(output(R"("response_format":{"type":"json_object"})")->kind, GrammarKind::json_object);
  const auto schema =
      output(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"const":1.5}}})");
  EXPECT_EQ(schema->kind, GrammarKind::json_schema);
  EXPECT_EQ(schema->text, R"({"const":1.5})");
  EXPECT_EQ(schema->field, "response_format.json_schema.schema");
  EXPECT_EQ(output(R"("response_format":{"type":"structural_tag","structures":[],"triggers":[]})")->text,
            R"({"type":"structural_tag","structures":[],"triggers":[]})");
  const auto compact = output(R"("structured_outputs":{"json":"{}","disable_any_whitespace":true})");
  EXPECT_EQ(compact->text, "{}");
  EXPECT_EQ(compact->options.whitespace, grammar::JsonOptions::Whitespace::none);
  EXPECT_EQ(output(R"("structured_outputs":{"regex":"a+"})")->text, "a+");
  EXPECT_EQ(output(R"("structured_outputs":{"grammar":"root ::= \"a\""})")->kind, GrammarKind::ebnf);
  EXPECT_EQ(output(R"("structured_outputs":{"choice":["a","b"]})")->text, R"(["a","b"])");
  EXPECT_EQ(output(R"("structured_outputs":{"regex":"a"},"response_format":{"type":"text"})")->text, "a");
  EXPECT_EQ(chat_error(R"("structured_outputs":{"regex":"a"},"response_format":{"type":"json_object"})"),
            "structured_outputs");
  const auto beside = output(R"("response_format":{"type":"json_object","schema":{"const":7}})");
  EXPECT_EQ(beside->text, R"({"const":7})");
  EXPECT_EQ(beside->field, "response_format.schema");

  EXPECT_EQ(chat_error(R"("response_format":{})"), "response_format.type");
  EXPECT_EQ(chat_error(R"("response_format":{"type":"xml"})"), "response_format.type");
  EXPECT_EQ(chat_error(R"("response_format":{"type":"json_schema"})"), "response_format.json_schema");
  EXPECT_EQ(chat_error(R"("response_format":{"type":"json_schema","json_schema":{}})"),
            "response_format.json_schema.schema");
  EXPECT_EQ(chat_error(R"("structured_outputs":{})"), "structured_outputs");
  EXPECT_EQ(chat_error(R"("structured_outputs":{"regex":"a","choice":["a"]})"), "structured_outputs");
  EXPECT_EQ(chat_error(R"("structured_outputs":{"regex":1})"), "structured_outputs.regex");
  EXPECT_EQ(chat_error(R"("structured_outputs":{"choice":[1]})"), "structured_outputs.choice");
  EXPECT_EQ(chat_error(R"("structured_outputs":{"json_object":false})"), "structured_outputs.json_object");
  EXPECT_EQ(chat_error(R"("structured_outputs":{"regex":"a","whitespace_pattern":"x"})"),
            "structured_outputs.whitespace_pattern");
  EXPECT_EQ(chat_error(R"("structured_outputs":{"regex":"a","foo":1})"), "structured_outputs.foo");
}

TEST(Requests, NumbersOfAnySizeAreKept) {
  for (const std::string n : {"18446744073709551615", "18446744073709551616", "-9223372036854775809",
                              "123456789012345678901234567890123456789012345678901234567890",
                              "0.1000000000000000055511151231257827", "1e400", "2.0"}) {
    const std::string schema = R"({"const":)" + n + R"(,"enum":[)" + n + R"(],"minimum":)" + n + "}";
    const auto format =
        chat(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":)" + schema + "}}");
    EXPECT_EQ(format.value().generation.output->text, schema);
    EXPECT_EQ(chat(R"("structured_outputs":{"json":)" + schema + "}").value().generation.output->text, schema);
    const std::string tools =
        R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":)" + schema +
        "}}}}]";
    const auto request = chat(tools + R"(,"tool_choice":"required")").value();
    EXPECT_NE(request.generation.output->text.find(schema), std::string::npos) << request.generation.output->text;
    EXPECT_NE(request.prompt.tools.find(schema), std::string::npos) << request.prompt.tools;
    const auto forced = forced_calls(R"([{"name":"f","parameters":{"x":)" + n + "}}]");
    EXPECT_EQ(forced.at(0).second, R"({"x":)" + n + "}");
  }
  EXPECT_EQ(chat_error(R"("seed":18446744073709551616)"), "seed");
  EXPECT_EQ(chat_error(R"("seed":"9223372036854775808")"), "seed");
  EXPECT_EQ(chat_error(R"("seed":"9223372036854775807")"), "accepted");
  EXPECT_EQ(chat_error(R"("stream_options":18446744073709551616)"), "stream_options");
  EXPECT_EQ(chat(R"("temperature":0.70000000000000000000000001)").value().generation.sampling.temperature, 0.7);
}

TEST(Requests, ForeignConstraintsAreRefusedByName) {
  for (const std::string name :
       {"guided_json", "guided_regex", "regex", "ebnf", "grammar", "json_schema", "format", "stop_regex"}) {
    EXPECT_EQ(chat_error('"' + name + R"(":"abc")"), name);
    EXPECT_EQ(completion_error('"' + name + R"(":{"const":1})"), name);
    EXPECT_TRUE(chat('"' + name + R"(":null)").has_value());
    EXPECT_TRUE(chat('"' + name + R"(":"")").has_value());
  }
  const auto unknown = [](const std::string& format) {
    return chat(R"("response_format":)" + format).value().generation.unknown_fields;
  };
  EXPECT_EQ(unknown(R"({"type":"json_object","strictly":true})"), std::vector<std::string>{"response_format.strictly"});
  EXPECT_EQ(unknown(R"({"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{},"extra":1}})"),
            std::vector<std::string>{"response_format.json_schema.extra"});
}

TEST(Requests, ToolsNeedNoType) {
  const auto request = chat(R"("tools":[{"function":{"name":"f"}}],"tool_choice":"none")");
  EXPECT_EQ(json::parse(request->prompt.tools).at(0).at("type"), "function");
  EXPECT_EQ(chat_error(R"("tools":[{"type":"web","function":{"name":"f"}}])"), "tools[0].type");
}

TEST(Requests, ForcedToolCalls) {
  const std::string tools = R"("tools":[
      {"type":"function","function":{"name":"f","parameters":{"type":"object","$defs":{"n":{"type":"null"}}}}},
      {"type":"function","function":{"name":"g"}}])";
  const auto generation = [&](const std::string& rest) {
    return chat(tools + "," + rest).value().generation;
  };
  EXPECT_FALSE(generation(R"("tool_choice":"none")").tools.forced.has_value());
  const GenerationRequest named = generation(R"("tool_choice":{"type":"function","function":{"name":"g"}})");
  EXPECT_EQ(named.tools.forced->function, "g");
  EXPECT_EQ(named.output->text, R"({"type":"object"})");
  const GenerationRequest any = generation(R"("tool_choice":"required","parallel_tool_calls":false)");
  EXPECT_EQ(any.tools.forced->function, "");
  const json::object schema = json::parse(any.output->text).as_object();
  EXPECT_EQ(schema.at("maxItems"), 1);
  EXPECT_EQ(schema.at("items").at("anyOf").as_array().size(), 2u);
  EXPECT_TRUE(schema.at("$defs").as_object().contains("n"));

  EXPECT_EQ(chat_error(tools + R"(,"tool_choice":{"type":"function","function":{"name":"h"}})"),
            "tool_choice.function.name");
  EXPECT_EQ(chat_error(tools + R"(,"tool_choice":"some")"), "tool_choice");
  EXPECT_FALSE(chat(R"("tools":[],"tool_choice":"auto")").value().generation.tools.dialect);
  EXPECT_EQ(chat_error(R"("tools":[],"tool_choice":"required")"), "tool_choice");
  EXPECT_EQ(chat_error(R"("tool_choice":"auto")"), "tool_choice");
  EXPECT_EQ(chat_error(tools + R"(,"tool_choice":"required","structured_outputs":{"regex":"a"})"),
            "tool_choice");
  // OpenAI's Agents SDK sends both fields. The response_format applies to the content, not to forced calls.
  EXPECT_EQ(generation(R"("tool_choice":"required","response_format":{"type":"json_object"})").output->field,
            "tools");
  EXPECT_EQ(chat_error(R"("tool_choice":"required","tools":[
      {"type":"function","function":{"name":"f","parameters":{"$defs":{"n":{"type":"null"}}}}},
      {"type":"function","function":{"name":"g","parameters":{"$defs":{"n":{"type":"string"}}}}}])"),
            "tools");
}

TEST(Requests, ToolsThatMayBeCalled) {
  RequestRules r = rules();
  r.tool_dialect = grammar::tool_dialect("hermes");
  r.exclude_unused_tools = true;
  const auto request = [&](const std::string& strict, const std::string& rest) {
    return chat(R"("tools":[{"type":"function","function":{"name":"f","strict":)" + strict +
                    R"(,"parameters":{"properties":{"a":{"type":"string"},"b":{"type":"null"}}}}}])" + rest,
                r);
  };
  const ChatRequest loose = request("false", "").value();
  EXPECT_EQ(loose.generation.tools.dialect, r.tool_dialect);
  EXPECT_TRUE(loose.generation.tools.tools->contains("f"));
  EXPECT_FALSE(loose.generation.output.has_value());
  const ChatRequest strict = request("true", R"(,"parallel_tool_calls":false)").value();
  ASSERT_TRUE(strict.generation.output);
  EXPECT_EQ(strict.generation.output->kind, grammar::GrammarKind::structural_tag);
  EXPECT_EQ(strict.generation.output->field, "tools");
  const std::string format = R"(,"response_format":{"type":"json_object"})";
  for (const char* strictness : {"true", "false"}) {
    const GenerationRequest either = request(strictness, format).value().generation;
    EXPECT_EQ(either.output->kind, grammar::GrammarKind::structural_tag);
    EXPECT_EQ(either.output->field, "response_format");
    EXPECT_TRUE(either.tools.bound);
  }
  EXPECT_EQ(request("true", R"(,"structured_outputs":{"regex":"a"})").error().field, "tool_choice");
  EXPECT_EQ(request("false", R"(,"structured_outputs":{"regex":"a"})")->generation.output->kind,
            grammar::GrammarKind::regex);
  EXPECT_EQ(request("1", "").error().field, "tools[0].function.strict");
  const ChatRequest none = request("true", R"(,"tool_choice":"none")").value();
  EXPECT_FALSE(none.generation.tools.dialect || none.generation.output);
  EXPECT_EQ(none.prompt.tools, "");
  EXPECT_NE(strict.prompt.tools, "");
}

TEST(Requests, Reasoning) {
  EXPECT_TRUE(chat("")->generation.thinking.included);
  EXPECT_FALSE(chat(R"("include_reasoning":false)")->generation.thinking.included);
  const auto off = [](const std::string& fields) { return chat(fields)->generation.thinking.off; };
  EXPECT_FALSE(off(R"("reasoning_effort":"high")"));
  EXPECT_TRUE(off(R"("reasoning_effort":"none")"));
  EXPECT_TRUE(off(R"("chat_template_kwargs":{"enable_thinking":false})"));
  EXPECT_FALSE(off(R"("reasoning_effort":"none","chat_template_kwargs":{"thinking":true})"));
  EXPECT_EQ(json::parse(chat(R"("reasoning_effort":"none")")->prompt.kwargs).at("enable_thinking"), false);
  const auto body = parse_body(
      R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","reasoning_content":"c"}]})");
  const json::value message = json::parse(parse_chat_request(*body, rules())->prompt.messages).at(1);
  EXPECT_EQ(message.at("reasoning"), "c");
  EXPECT_EQ(message.at("reasoning_content"), "c");
}

TEST(Requests, ModelsAndUnknownFields) {
  EXPECT_EQ(chat(R"("model":"nope")").error().code, ErrorCode::not_found);
  EXPECT_TRUE(chat(R"("model":"alias")").has_value());
  EXPECT_EQ(chat(R"("foo":1,"stream":true,"stream_options":{"bar":2})").value().generation.unknown_fields,
            (std::vector<std::string>{"stream_options.bar", "foo"}));
  EXPECT_EQ(chat_error(R"("stream_options":{"include_usage":true})"), "stream_options");
}

TEST(Requests, DefaultsComeFromRequestThenModelThenOpenai) {
  RequestRules r = rules();
  EXPECT_EQ(chat("", r)->generation.sampling.temperature, 1.0);
  r.defaults =
      generation_defaults({{"temperature", 0.6}, {"top_k", 20}, {"max_new_tokens", nullptr}}).value();
  EXPECT_EQ(chat("", r)->generation.sampling.temperature, 0.6);
  EXPECT_EQ(chat("", r)->generation.sampling.top_k, 20);
  EXPECT_EQ(chat(R"("temperature":0.2)", r)->generation.sampling.temperature, 0.2);
  EXPECT_EQ(chat(R"("temperature":null)", r)->generation.sampling.temperature, 0.6);
  EXPECT_EQ(chat("")->generation.sampling.max_tokens, std::nullopt);
  EXPECT_EQ(completion("")->generation.sampling.max_tokens, 16);
  EXPECT_EQ(chat(R"("max_tokens":5,"max_completion_tokens":7)")->generation.sampling.max_tokens, 7);
}

TEST(Requests, ErrorsHaveTheNameThatTheClientUsed) {
  EXPECT_EQ(chat_error(R"("max_tokens":0)"), "max_tokens");
  EXPECT_EQ(chat_error(R"("max_completion_tokens":0)"), "max_completion_tokens");
  EXPECT_EQ(chat_error(R"("max_tokens":3,"max_completion_tokens":0)"), "max_completion_tokens");
  EXPECT_EQ(chat(R"("max_tokens":1.5)").error().message, "must be a whole number, got 1.5");
  EXPECT_EQ(chat(R"("logprobs":true,"top_logprobs":50)").error().message,
            "must be at most 20 (--max-logprobs), got 50");
  EXPECT_EQ(chat(R"("model":"nope")").error().message,
            "the model \"nope\" does not exist; this server has m, alias (all: GET /v1/models)");
}

TEST(Requests, Logprobs) {
  EXPECT_EQ(chat(R"("logprobs":true)")->generation.sampling.logprobs.output, 0);
  EXPECT_EQ(chat(R"("logprobs":true,"top_logprobs":3)")->generation.sampling.logprobs.output, 3);
  EXPECT_EQ(chat_error(R"("top_logprobs":3)"), "top_logprobs");
  EXPECT_EQ(chat_error(R"("logprobs":3)"), "logprobs");
  EXPECT_EQ(chat_error(R"("logprobs":true,"top_logprobs":21)"), "top_logprobs");
  EXPECT_EQ(completion(R"("logprobs":3)")->generation.sampling.logprobs.output, 3);
  EXPECT_EQ(completion(R"("logprobs":3,"echo":true)")->generation.sampling.logprobs.prompt, 3);
  EXPECT_EQ(chat_error(R"("prompt_logprobs":1,"stream":true)"), "prompt_logprobs");
  // The reply reports the tokens of logprob_token_ids, so top_logprobs may differ from their number.
  EXPECT_TRUE(chat(R"("logprobs":true,"top_logprobs":3,"logprob_token_ids":[5])").has_value());
  EXPECT_TRUE(completion(R"("logprobs":5,"logprob_token_ids":[5,6])").has_value());
}

// The example in OpenAI's quick start sends `store`, so it must be accepted.
TEST(Requests, ChatsAreNotStored) {
  const auto stored = chat(R"("store":true)");
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->generation.unknown_fields, std::vector<std::string>{"store"}) << "the log says so";
  EXPECT_TRUE(chat(R"("store":false)")->generation.unknown_fields.empty());
  EXPECT_EQ(chat_error(R"("store":"yes")"), "store");
}

// An empty text is refused even if the tokenizer begins each text with a special token.
TEST(Requests, AnEmptyTextIsNoPrompt) {
  const auto read = [](std::string_view body) {
    const auto request = parse_completion_request(json::parse(body).as_object(), rules());
    return request ? "accepted" : request.error().field;
  };
  EXPECT_EQ(read(R"({"prompt":""})"), "prompt");
  EXPECT_EQ(read(R"({"prompt":[""]})"), "accepted") << "as in vLLM";
  EXPECT_EQ(read(R"({"prompt":"","suffix":"}"})"), "accepted") << "the cursor is at the beginning of a file";
}

TEST(Requests, Prompts) {
  const auto prompts = [](const std::string& value) {
    const auto body = parse_body("{\"prompt\":" + value + "}").value();
    const auto request = parse_completion_request(body, rules());
    return request ? static_cast<int>(request->prompts.size()) : -1;
  };
  EXPECT_EQ(prompts("\"a\""), 1);
  EXPECT_EQ(prompts(R"(["a","b"])"), 2);
  EXPECT_EQ(prompts("[1,2,3]"), 1);
  EXPECT_EQ(prompts("[[1,2],[3]]"), 2);
  EXPECT_EQ(prompts("[]"), -1);
  EXPECT_EQ(prompts("null"), -1);
  EXPECT_EQ(prompts("{}"), -1);
  EXPECT_EQ(prompts("7"), -1);
  EXPECT_EQ(prompts(R"(["a",1])"), -1);
  EXPECT_EQ(prompts(R"([1,"a"])"), -1);
  EXPECT_EQ(prompts("[[1],\"a\"]"), -1);
  EXPECT_EQ(prompts("[-1]"), -1);
  EXPECT_EQ(prompts("[2147483648]"), -1);
  EXPECT_EQ(completion(R"("echo":true,"max_tokens":0)")->prompt_only, true);
  EXPECT_EQ(completion_error(R"("max_tokens":0)"), "max_tokens");
}

}  // namespace
}  // namespace octavo::openai
