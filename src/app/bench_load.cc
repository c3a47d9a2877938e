#include "app/bench_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <filesystem>
#include <thread>

#include "app/environment.h"
#include "base/clock.h"
#include "http/client.h"
#include "local/flag_table.h"
#include "local/load_tokenizer.h"
#include "local/progress.h"

namespace octavo {
namespace {

namespace json = boost::json;

http::Headers headers_with_key() {
  http::Headers headers;
  if (const std::string key = environment("OPENAI_API_KEY"); !key.empty())
    headers.add("Authorization", fmt::format("Bearer {}", key));
  return headers;
}

Result<json::object> listed_model(const http::Address& server, int timeout_s) {
  const std::int64_t give_up = now_us() + std::int64_t{timeout_s} * 1'000'000;
  for (bool reported = false;; reported = true) {
    const auto requested = [&]() -> Result<json::object> {
      TRY(http::Client client, http::Client::connect({.host = server.host, .port = server.port}));
      TRY(const http::Response response, client.request("GET", "/v1/models", {}, headers_with_key()));
      boost::system::error_code wrong;
      const json::value body = json::parse(response.body, wrong);
      const json::value* first = wrong ? nullptr : body.find_pointer("/data/0", wrong);
      if (response.status != 200 || first == nullptr || !first->is_object())
        return failure(ErrorCode::io, "GET /v1/models at {} returned status {}: {:.200}", server.text(),
                       response.status, response.body);
      return first->get_object();
    }();
    if (requested || now_us() >= give_up) return requested;
    if (!reported)
      fmt::print(stderr, "waiting up to {} s for {} (--ready-check-timeout-sec): {}\n", timeout_s,
                 server.text(), requested.error().message);
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

// Returns the tokenizer's folder: --tokenizer, or the model of the command line or of the server's list.
Result<std::string> tokenizer_path(const LoadFlags& c, const json::object& listed) {
  if (!c.tokenizer.empty()) return c.tokenizer;
  for (const std::string& path : {c.model, text_of(listed, "root"), text_of(listed, "id")})
    if (std::error_code ignored; !path.empty() && std::filesystem::exists(path, ignored)) return path;
  return invalid("tokenizer",
                 "must be given (the model's folder or GGUF file), because the server's list of models does "
                 "not contain a path");
}

Result<json::object> extra_fields(const LoadFlags& c) {
  json::object body;
  if (c.ignore_eos) body["ignore_eos"] = true;
  if (c.temperature >= 0) body["temperature"] = c.temperature;
  if (c.top_p >= 0) body["top_p"] = c.top_p;
  if (c.top_k >= 0) body["top_k"] = c.top_k;
  if (c.extra_body.empty()) return body;
  boost::system::error_code wrong;
  const json::value extra = json::parse(c.extra_body, wrong);
  if (wrong || !extra.is_object()) return invalid("extra-body", "must be a JSON object");
  for (const auto& [key, value] : extra.get_object()) body[key] = value;
  return body;
}

// Converts the prompts' token ids to text, because chat requests need text.
Result<> write_out(std::vector<traffic::Prompt>& prompts, const Tokenizer& tokenizer) {
  for (traffic::Prompt& prompt : prompts) {
    if (prompt.ids.empty()) continue;
    TRY(prompt.text, tokenizer.decode(prompt.ids, true));
  }
  return {};
}

}  // namespace

void add_load_flags(CLI::App& app, LoadFlags& c) {
  app.add_option("--backend", c.backend,
                 "API of the server: vllm and openai send completions, openai-chat sends chats")
      ->check(CLI::IsMember({"vllm", "openai", "openai-chat"}))
      ->capture_default_str();
  app.add_option("--base-url", c.base_url,
                 "URL of the server, as http://HOST:PORT; replaces --host and --port");
  app.add_option("--host", c.host, "Host of the server")->capture_default_str();
  add_number(app, "--port", c.port, "Port of the server")->capture_default_str();
  app.add_option("--endpoint", c.endpoint, "Path of the requests (default: the one of --backend)");
  app.add_option("--model", c.model,
                 "Name or path of the model (default: the first model that the server lists)");
  app.add_option("--served-model-name", c.served_model_name,
                 "Name of the model in requests, if --model is a path");
  app.add_option("--tokenizer", c.tokenizer, "Folder or GGUF file with the tokenizer (default: the model's)");
  app.add_option("--ready-check-timeout-sec", c.ready_check_timeout_s,
                 "Maximum number of seconds to wait until the server is ready")
      ->check(number_between(0, 86'400))
      ->capture_default_str();

  traffic::DatasetOptions& d = c.dataset;
  const auto tokens = [&](const char* flag, int& to, int least, const char* help) {
    app.add_option(flag, to, help)->check(number_between(least, 1 << 24))->capture_default_str();
  };
  app.add_option("--dataset-name", d.name, "Data set of the prompts")
      ->check(CLI::IsMember({"random", "prefix_repetition", "sharegpt", "sonnet", "custom", "hf"}))
      ->capture_default_str();
  app.add_option("--dataset-path", d.path,
                 "File of sharegpt (JSON), sonnet (text) or custom (JSON lines with \"prompt\")");
  add_number(app, "--seed", d.seed, "Seed of the prompts and the arrival times")->capture_default_str();
  tokens("--random-input-len", d.random_input_len, 1, "For random: number of prompt tokens");
  tokens("--random-output-len", d.random_output_len, 1, "For random: number of output tokens");
  app.add_option("--random-range-ratio", d.random_range_ratio,
                 "For random: relative deviation of input and output lengths, below 1")
      ->check(number_between(0.0, 0.999))
      ->capture_default_str();
  tokens("--random-prefix-len", d.random_prefix_len, 0,
         "For random: tokens common to all prompts, added to --random-input-len");
  tokens("--prefix-repetition-num-prefixes", d.prefixes, 1,
         "For prefix_repetition: number of different prefixes");
  tokens("--prefix-repetition-prefix-len", d.prefix_len, 1,
         "For prefix_repetition: number of tokens in a prefix");
  tokens("--prefix-repetition-suffix-len", d.suffix_len, 1,
         "For prefix_repetition: prompt tokens after the prefix");
  tokens("--prefix-repetition-output-len", d.prefix_output_len, 1,
         "For prefix_repetition: number of output tokens");
  tokens("--sonnet-input-len", d.sonnet_input_len, 1, "For sonnet: number of prompt tokens");
  tokens("--sonnet-prefix-len", d.sonnet_prefix_len, 0,
         "For sonnet: tokens common to all prompts, part of --sonnet-input-len");
  tokens("--sonnet-output-len", d.sonnet_output_len, 1, "For sonnet: number of output tokens");
  tokens("--sharegpt-output-len", d.sharegpt_output_len, 0,
         "For sharegpt: number of output tokens; 0: the length of the answer in the file");
  tokens("--custom-output-len", d.custom_output_len, 1, "For custom: number of output tokens");

  app.add_option("--burstiness", c.burstiness,
                 "Shape of the gamma distribution of arrivals. 1: Poisson arrivals; below 1: more bursts; "
                 "above 1: more even")
      ->check(number_between(0.001, 1e6))
      ->capture_default_str();
  app.add_option("--max-concurrency", c.max_concurrency, "Maximum number of requests in flight; 0: no limit")
      ->check(number_between(0, 1 << 20))
      ->capture_default_str();

  app.add_flag("--ignore-eos", c.ignore_eos,
               "Ignore end tokens, so that each answer has the requested number of tokens");
  add_number(app, "--temperature", c.temperature, "Temperature of each request (default: the server's)");
  add_number(app, "--top-p", c.top_p, "top_p of each request (default: the server's)");
  add_number(app, "--top-k", c.top_k, "top_k of each request (default: the server's)");
  app.add_option("--extra-body", c.extra_body, "JSON object with more fields for each request");
}

Result<LoadTarget> find_target(const LoadFlags& c) {
  const bool chat = c.backend == "openai-chat";
  http::Address server{.host = c.host, .port = c.port};
  if (!c.base_url.empty()) {
    TRY(server, http::parse_base_url(c.base_url));
  }
  traffic::LoadOptions options{.server = std::move(server),
                               .endpoint = c.endpoint,
                               .chat = chat,
                               .headers = headers_with_key(),
                               .model = c.served_model_name.empty() ? c.model : c.served_model_name,
                               .body = {},
                               .max_concurrency = c.max_concurrency};
  if (options.endpoint.empty()) options.endpoint = chat ? "/v1/chat/completions" : "/v1/completions";
  TRY(options.body, extra_fields(c));
  TRY(const json::object listed, listed_model(options.server, c.ready_check_timeout_s));
  if (options.model.empty()) options.model = text_of(listed, "id");
  TRY(const std::string tokenizer_at, tokenizer_path(c, listed));
  TRY(Tokenizer tokenizer, load_tokenizer(tokenizer_at));
  return LoadTarget{std::move(options), tokenizer_at, std::move(tokenizer)};
}

Result<std::vector<traffic::Prompt>> load_prompts(const traffic::DatasetOptions& options,
                                                  const LoadTarget& target) {
  TRY(std::vector<traffic::Prompt> prompts, load_dataset(options, target.tokenizer));
  if (target.options.chat) {
    TRY_VOID(write_out(prompts, target.tokenizer));
  }
  return prompts;
}

Result<> try_out(const std::vector<traffic::Prompt>& prompts, int warmups, const LoadTarget& target) {
  const auto send = [&](std::size_t count) {
    return run_load(std::vector<traffic::Prompt>(count, prompts.front()), std::vector<std::int64_t>(count),
                    target.options, [](std::size_t) {});
  };
  const traffic::LoadResult trial = send(1);
  if (!trial.answers[0].error.empty())
    return failure(ErrorCode::invalid_argument, "the first request failed: {}", trial.answers[0].error);
  send(static_cast<std::size_t>(warmups));
  return {};
}

MeasuredLoad measure_load(const std::vector<traffic::Prompt>& prompts, std::span<const std::int64_t> due_us,
                          const LoadTarget& target, const traffic::Goodput& goodput,
                          std::span<const double> percentiles) {
  MeasuredLoad measured;
  ProgressBar bar("measuring", "requests", 1);
  measured.run =
      run_load(prompts, due_us, target.options, [&](std::size_t ended) { bar.show(ended, prompts.size()); });
  bar.finish();
  std::vector<traffic::AnswerTimes> answers;
  traffic::GapCounts gaps;
  for (const traffic::LoadAnswer& a : measured.run.answers) {
    answers.push_back(a.times);
    if (!a.times.completed) continue;
    for (const std::int64_t gap : a.gaps_us) gaps.add(gap);
  }
  measured.figures = figures(answers, gaps, measured.run.seconds, goodput, percentiles);
  return measured;
}

Result<> none_failed(const traffic::LoadResult& run) {
  const auto failed = [](const traffic::LoadAnswer& a) { return !a.error.empty(); };
  if (const auto first = std::ranges::find_if(run.answers, failed); first != run.answers.end())
    return failure(ErrorCode::io, "{} requests failed; error of the first one: {}",
                   std::ranges::count_if(run.answers, failed), first->error);
  return {};
}

}  // namespace octavo
