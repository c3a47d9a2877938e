// octavo bench serve: load on a running server, with the flags, names and figures of vLLM's `bench serve`.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "app/commands.h"
#include "app/environment.h"
#include "base/clock.h"
#include "http/client.h"
#include "local/load_tokenizer.h"
#include "local/progress.h"
#include "traffic/arrivals.h"
#include "traffic/dataset.h"
#include "traffic/figures.h"
#include "traffic/load_run.h"

namespace octavo {
namespace {

namespace json = boost::json;
using traffic::LoadAnswer;
using traffic::LoadResult;

struct ServeCommand {
  std::string backend = "openai";
  std::string base_url;
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;
  std::string endpoint;
  std::string model;
  std::string served_model_name;
  std::string tokenizer;
  std::string label;
  int ready_check_timeout_s = 600;

  traffic::DatasetOptions dataset;
  traffic::ArrivalOptions arrivals;
  std::string request_rate = "inf";
  std::string ramp_up = "none";
  int max_concurrency = 0;
  int num_warmups = 0;

  bool ignore_eos = false;
  double temperature = -1;
  double top_p = -1;
  int top_k = -1;
  std::string extra_body;

  std::string percentile_metrics = "ttft,tpot,itl";
  std::string metric_percentiles = "99";
  std::vector<std::string> goodput;
  std::vector<std::string> metadata;
  bool save_result = false;
  bool save_detailed = false;
  bool append_result = false;
  std::string result_dir = ".";
  std::string result_filename;
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<double> number(std::string_view field, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0) return invalid(field, "\"{}\" is no number", text);
  return value;
}

Result<std::vector<double>> percentiles_of(const ServeCommand& c) {
  std::vector<double> percentiles;
  for (const std::string& part : split(c.metric_percentiles)) {
    TRY(const double percent, number("metric-percentiles", part));
    if (!(percent >= 0 && percent <= 100))
      return invalid("metric-percentiles", "{} must lie in [0, 100]", part);
    percentiles.push_back(percent);
  }
  return percentiles;
}

Result<std::set<std::string>> shown_times(const ServeCommand& c) {
  std::set<std::string> shown;
  for (const std::string& name : split(c.percentile_metrics)) {
    if (name != "ttft" && name != "tpot" && name != "itl" && name != "e2el")
      return invalid("percentile-metrics", "\"{}\" must be one of ttft, tpot, itl, e2el", name);
    shown.insert(name);
  }
  return shown;
}

Result<traffic::ArrivalOptions> arrivals_of(const ServeCommand& c) {
  traffic::ArrivalOptions arrivals = c.arrivals;
  arrivals.seed = c.dataset.seed;
  if (c.ramp_up != "none") {
    arrivals.ramp_up = c.ramp_up == "linear" ? traffic::RampUp::linear : traffic::RampUp::exponential;
    if (c.request_rate != "inf") return invalid("ramp-up-strategy", "goes without --request-rate");
    if (arrivals.ramp_up_start <= 0 || arrivals.ramp_up_end <= 0)
      return invalid("ramp-up-strategy", "needs --ramp-up-start-rps and --ramp-up-end-rps above 0");
  } else if (c.request_rate != "inf") {
    TRY(arrivals.request_rate, number("request-rate", c.request_rate));
    if (!(arrivals.request_rate > 0)) return invalid("request-rate", "{} must be above 0", c.request_rate);
  }
  return arrivals;
}

http::Headers headers_with_key() {
  http::Headers headers;
  if (const std::string key = environment("OPENAI_API_KEY"); !key.empty())
    headers.add("Authorization", fmt::format("Bearer {}", key));
  return headers;
}

// The first model that the server lists; waits until it lists one.
Result<json::object> listed_model(const http::Address& server, int timeout_s) {
  const std::int64_t give_up = now_us() + std::int64_t{timeout_s} * 1'000'000;
  for (;;) {
    const auto asked = [&]() -> Result<json::object> {
      TRY(http::Client client, http::Client::connect({.host = server.host, .port = server.port}));
      TRY(const http::Response response, client.request("GET", "/v1/models", {}, headers_with_key()));
      json::error_code wrong;
      const json::value body = json::parse(response.body, wrong);
      const json::value* first = wrong ? nullptr : body.find_pointer("/data/0", wrong);
      if (response.status != 200 || first == nullptr || !first->is_object())
        return failure(ErrorCode::io, "GET /v1/models at {} says {}: {:.200}", server.text(), response.status,
                       response.body);
      return first->get_object();
    }();
    if (asked || now_us() >= give_up) return asked;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

// --tokenizer, else the model's folder as the command line or the server's list names it.
Result<std::string> tokenizer_path(const ServeCommand& c, const json::object& listed) {
  if (!c.tokenizer.empty()) return c.tokenizer;
  for (const std::string& path : {c.model, text_of(listed, "root"), text_of(listed, "id")})
    if (std::error_code ignored; !path.empty() && std::filesystem::exists(path, ignored)) return path;
  return invalid("tokenizer",
                 "is needed: the model's folder or GGUF file, which the server's list does not name");
}

Result<json::object> extra_fields(const ServeCommand& c) {
  json::object body;
  if (c.ignore_eos) body["ignore_eos"] = true;
  if (c.temperature >= 0) body["temperature"] = c.temperature;
  if (c.top_p >= 0) body["top_p"] = c.top_p;
  if (c.top_k >= 0) body["top_k"] = c.top_k;
  if (c.extra_body.empty()) return body;
  json::error_code wrong;
  const json::value extra = json::parse(c.extra_body, wrong);
  if (wrong || !extra.is_object()) return invalid("extra-body", "must be a JSON object");
  for (const auto& [key, value] : extra.get_object()) body[key] = value;
  return body;
}

// A chat is sent as text.
Result<> write_out(std::vector<traffic::Prompt>& prompts, const Tokenizer& tokenizer) {
  for (traffic::Prompt& prompt : prompts) {
    if (prompt.ids.empty()) continue;
    TRY(prompt.text, tokenizer.decode(prompt.ids, true));
  }
  return {};
}

void print_times(const json::object& result, std::string_view name, std::string_view title,
                 const std::vector<double>& percentiles) {
  const auto line = [&](std::string_view what, const std::string& key) {
    fmt::print("{:<40} {:<10.2f}\n", fmt::format("{} {} (ms):", what, title),
               result.at(key).to_number<double>());
  };
  line("Mean", fmt::format("mean_{}_ms", name));
  line("Median", fmt::format("median_{}_ms", name));
  for (const double percent : percentiles)
    line(fmt::format("P{:g}", percent), fmt::format("p{:g}_{}_ms", percent, name));
}

void print_result(const json::object& result, const std::set<std::string>& shown,
                  const std::vector<double>& percentiles) {
  const auto count = [&](std::string_view title, std::string_view key) {
    fmt::print("{:<40} {:<10}\n", title, result.at(key).to_number<std::int64_t>());
  };
  const auto rate = [&](std::string_view title, std::string_view key) {
    fmt::print("{:<40} {:<10.2f}\n", title, result.at(key).to_number<double>());
  };
  fmt::print("{:=^50}\n", " Serving Benchmark Result ");
  count("Successful requests:", "completed");
  count("Failed requests:", "failed");
  rate("Benchmark duration (s):", "duration");
  count("Total input tokens:", "total_input_tokens");
  count("Total generated tokens:", "total_output_tokens");
  rate("Request throughput (req/s):", "request_throughput");
  if (!result.at("request_goodput").is_null()) rate("Request goodput (req/s):", "request_goodput");
  rate("Output token throughput (tok/s):", "output_throughput");
  rate("Peak output token throughput (tok/s):", "max_output_tokens_per_s");
  rate("Peak concurrent requests:", "max_concurrent_requests");
  rate("Total token throughput (tok/s):", "total_token_throughput");
  struct Section {
    const char *name, *title, *headline;
  };
  for (const Section& s :
       {Section{"ttft", "TTFT", "Time to First Token"},
        Section{"tpot", "TPOT", "Time per Output Token (excl. 1st token)"},
        Section{"itl", "ITL", "Inter-token Latency"}, Section{"e2el", "E2EL", "End-to-end Latency"}}) {
    if (!shown.contains(s.name)) continue;
    fmt::print("{:-^50}\n", s.headline);
    print_times(result, s.name, s.title, percentiles);
  }
  fmt::print("{:=^50}\n", "");
}

void put_details(json::object& out, const LoadResult& run) {
  json::array input, output, ttfts, itls, starts, texts, errors;
  const std::int64_t begin = run.answers.front().times.sent_us;
  for (const LoadAnswer& a : run.answers) {
    input.push_back(a.times.input_tokens);
    output.push_back(a.times.completed ? a.times.output_tokens : 0);
    ttfts.push_back(a.times.completed ? times_of(a.times).ttft * 1e-3 : 0);
    json::array gaps;
    for (const std::int64_t gap : a.gaps_us) gaps.push_back(static_cast<double>(gap) * 1e-6);
    itls.push_back(std::move(gaps));
    starts.push_back(static_cast<double>(a.times.sent_us - begin) * 1e-6);
    texts.emplace_back(a.text);
    errors.emplace_back(a.error);
  }
  out["input_lens"] = std::move(input);
  out["output_lens"] = std::move(output);
  out["ttfts"] = std::move(ttfts);
  out["itls"] = std::move(itls);
  out["start_times"] = std::move(starts);
  out["generated_texts"] = std::move(texts);
  out["errors"] = std::move(errors);
}

Result<> save(const ServeCommand& c, const json::object& result) {
  if (!c.save_result && !c.append_result) return {};
  std::string name = c.result_filename;
  if (name.empty()) {
    std::string model = text_of(result, "model_id");
    model = model.substr(model.rfind('/') + 1);
    name = fmt::format("{}-{}qps{}-{}-{}.json", c.label.empty() ? c.backend : c.label, c.request_rate,
                       c.max_concurrency > 0 ? fmt::format("-concurrency{}", c.max_concurrency) : "", model,
                       text_of(result, "date"));
  }
  const std::filesystem::path path = std::filesystem::path(c.result_dir) / name;
  std::error_code ignored;
  std::filesystem::create_directories(c.result_dir, ignored);
  std::ofstream file(path, c.append_result ? std::ios::app : std::ios::trunc);
  file << json::serialize(result) << '\n';
  if (!file.flush()) return field_failure("result-dir", ErrorCode::io, "cannot write {}", path.string());
  return {};
}

Result<> put_metadata(json::object& result, const std::vector<std::string>& metadata) {
  for (const std::string& item : metadata) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0)
      return invalid("metadata", "\"{}\" must be KEY=VALUE", item);
    result[item.substr(0, equals)] = item.substr(equals + 1);
  }
  return {};
}

Result<> bench_serve(const ServeCommand& c) {
  const bool chat = c.backend == "openai-chat";
  TRY(const traffic::ArrivalOptions arrivals, arrivals_of(c));
  TRY(const std::vector<double> percentiles, percentiles_of(c));
  TRY(const std::set<std::string> shown, shown_times(c));
  TRY(const traffic::Goodput goodput, traffic::Goodput::parse(c.goodput));
  json::object result{{"date", fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)))}};
  TRY_VOID(put_metadata(result, c.metadata));
  traffic::LoadOptions load{.server = {c.host, c.port},
                            .endpoint = c.endpoint,
                            .chat = chat,
                            .headers = headers_with_key(),
                            .model = c.served_model_name.empty() ? c.model : c.served_model_name,
                            .body = {},
                            .max_concurrency = c.max_concurrency};
  if (!c.base_url.empty()) {
    TRY(load.server, http::parse_base_url(c.base_url));
  }
  if (load.endpoint.empty()) load.endpoint = chat ? "/v1/chat/completions" : "/v1/completions";
  TRY(load.body, extra_fields(c));
  TRY(const json::object listed, listed_model(load.server, c.ready_check_timeout_s));
  if (load.model.empty()) load.model = text_of(listed, "id");
  TRY(const std::string tokenizer_at, tokenizer_path(c, listed));
  TRY(const Tokenizer tokenizer, load_tokenizer(tokenizer_at));
  TRY(std::vector<traffic::Prompt> prompts, load_dataset(c.dataset, tokenizer));
  if (chat) {
    TRY_VOID(write_out(prompts, tokenizer));
  }

  // One request first: what is wrong with all of them is said once.
  const std::vector<traffic::Prompt> first(prompts.begin(), prompts.begin() + 1);
  const LoadResult trial = run_load(first, std::vector<std::int64_t>{0}, load, [](std::size_t) {});
  if (!trial.answers[0].error.empty())
    return failure(ErrorCode::invalid_argument, "the first request failed: {}", trial.answers[0].error);
  const std::vector<traffic::Prompt> warmups(static_cast<std::size_t>(c.num_warmups), prompts.front());
  run_load(warmups, std::vector<std::int64_t>(warmups.size()), load, [](std::size_t) {});

  ProgressBar bar("measuring", "requests", 1);
  const LoadResult run = run_load(prompts, arrival_times(prompts.size(), arrivals), load,
                                  [&](std::size_t ended) { bar.show(ended, prompts.size()); });
  bar.finish();

  std::vector<traffic::AnswerTimes> answers;
  traffic::GapCounts gaps;
  for (const LoadAnswer& a : run.answers) {
    answers.push_back(a.times);
    if (!a.times.completed) continue;
    for (const std::int64_t gap : a.gaps_us) gaps.add(gap);
  }
  result["endpoint_type"] = c.backend;
  result["backend"] = c.backend;
  result["label"] = c.label.empty() ? json::value() : json::value(c.label);
  result["model_id"] = load.model;
  result["tokenizer_id"] = tokenizer_at;
  result["num_prompts"] = c.dataset.num_prompts;
  result["request_rate"] =
      arrivals.request_rate > 0 ? json::value(arrivals.request_rate) : json::value(c.request_rate);
  result["burstiness"] = arrivals.burstiness;
  result["max_concurrency"] = c.max_concurrency > 0 ? json::value(c.max_concurrency) : json::value();
  for (auto& [key, value] : figures(answers, gaps, run.seconds, goodput, percentiles)) result[key] = value;
  print_result(result, shown, percentiles);
  if (c.save_detailed) put_details(result, run);
  TRY_VOID(save(c, result));
  if (const auto failed = std::ranges::find_if(run.answers, [](const auto& a) { return !a.error.empty(); });
      failed != run.answers.end())
    return failure(ErrorCode::io, "{} requests failed, the first of them: {}",
                   result.at("failed").to_number<std::int64_t>(), failed->error);
  return {};
}

void add_flags(CLI::App& app, ServeCommand& c) {
  app.add_option("--backend", c.backend, "vllm and openai complete a prompt, openai-chat answers a message")
      ->check(CLI::IsMember({"vllm", "openai", "openai-chat"}))
      ->capture_default_str();
  app.add_option("--base-url", c.base_url, "http://HOST:PORT of the server; instead of --host and --port");
  app.add_option("--host", c.host, "The server's host")->capture_default_str();
  app.add_option("--port", c.port, "The server's port")->capture_default_str();
  app.add_option("--endpoint", c.endpoint, "The server's route; by default the backend's own");
  app.add_option("--model", c.model, "Name of the model; by default the first that the server lists");
  app.add_option("--served-model-name", c.served_model_name, "Name in requests, where --model is a path");
  app.add_option("--tokenizer", c.tokenizer, "Model folder or GGUF file; by default the model's own");
  app.add_option("--label", c.label, "Names the run in the result");
  app.add_option("--ready-check-timeout-sec", c.ready_check_timeout_s,
                 "How long the server may take to be there")
      ->check(CLI::Range(0, 86'400))
      ->capture_default_str();

  traffic::DatasetOptions& d = c.dataset;
  const auto tokens = [&](const char* flag, int& to, int least, const char* help) {
    app.add_option(flag, to, help)->check(CLI::Range(least, 1 << 24))->capture_default_str();
  };
  app.add_option("--dataset-name", d.name, "What is asked")
      ->check(CLI::IsMember({"random", "prefix_repetition", "sharegpt", "custom"}))
      ->capture_default_str();
  app.add_option("--dataset-path", d.path, "File of sharegpt (JSON) or custom (JSON lines with \"prompt\")");
  tokens("--num-prompts", d.num_prompts, 1, "Requests");
  app.add_option("--seed", d.seed, "Of prompts and arrivals")->capture_default_str();
  tokens("--random-input-len", d.random_input_len, 1, "random: prompt tokens");
  tokens("--random-output-len", d.random_output_len, 1, "random: generated tokens");
  app.add_option("--random-range-ratio", d.random_range_ratio, "random: spread of both lengths, in [0, 1)")
      ->check(CLI::Range(0.0, 0.999))
      ->capture_default_str();
  tokens("--random-prefix-len", d.random_prefix_len, 0,
         "random: prompt tokens common to all, beside the others");
  tokens("--prefix-repetition-num-prefixes", d.prefixes, 1, "prefix_repetition: different prefixes");
  tokens("--prefix-repetition-prefix-len", d.prefix_len, 1, "prefix_repetition: tokens of a prefix");
  tokens("--prefix-repetition-suffix-len", d.suffix_len, 1, "prefix_repetition: tokens after it");
  tokens("--prefix-repetition-output-len", d.prefix_output_len, 1, "prefix_repetition: generated tokens");
  tokens("--sharegpt-output-len", d.sharegpt_output_len, 0,
         "sharegpt: generated tokens; 0: as the file's answer");
  tokens("--custom-output-len", d.custom_output_len, 1, "custom: generated tokens");

  app.add_option("--request-rate", c.request_rate, "Requests per second; inf sends all at once")
      ->capture_default_str();
  app.add_option("--burstiness", c.arrivals.burstiness, "1: Poisson arrivals; less is burstier")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  app.add_option("--ramp-up-strategy", c.ramp_up,
                 "The rate grows from --ramp-up-start-rps to --ramp-up-end-rps")
      ->check(CLI::IsMember({"none", "linear", "exponential"}))
      ->capture_default_str();
  app.add_option("--ramp-up-start-rps", c.arrivals.ramp_up_start, "Requests per second at the first request");
  app.add_option("--ramp-up-end-rps", c.arrivals.ramp_up_end, "Requests per second at the last request");
  app.add_option("--max-concurrency", c.max_concurrency, "Requests open at a time; 0: any number")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--num-warmups", c.num_warmups, "Requests before the measured ones")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();

  app.add_flag("--ignore-eos", c.ignore_eos, "Generate as many tokens as asked for");
  app.add_option("--temperature", c.temperature, "Of each request; by default the server's");
  app.add_option("--top-p", c.top_p, "Of each request; by default the server's");
  app.add_option("--top-k", c.top_k, "Of each request; by default the server's");
  app.add_option("--extra-body", c.extra_body, "JSON object with further fields of each request");

  app.add_option("--percentile-metrics", c.percentile_metrics,
                 "Times that are printed, of ttft,tpot,itl,e2el")
      ->capture_default_str();
  app.add_option("--metric-percentiles", c.metric_percentiles, "Percentiles of times")->capture_default_str();
  app.add_option("--goodput", c.goodput, "Limits of a good request in ms: ttft:200 tpot:50 e2el:5000");
  app.add_option("--metadata", c.metadata, "KEY=VALUE, for the result");
  app.add_flag("--save-result", c.save_result, "Write the result as JSON");
  app.add_flag("--save-detailed", c.save_detailed, "With every request's lengths, times and text");
  app.add_flag("--append-result", c.append_result, "Add to the file instead of replacing it");
  app.add_option("--result-dir", c.result_dir, "Folder of the result")->capture_default_str();
  app.add_option("--result-filename", c.result_filename, "By default backend, rate, model and date");
}

}  // namespace

void add_bench_serve(CLI::App& bench, Outcome& outcome) {
  CLI::App* serve = bench.add_subcommand("serve", "Load on a running server: throughput, TTFT, TPOT, ITL");
  auto command = std::make_shared<ServeCommand>();
  add_flags(*serve, *command);
  serve->callback([command, &outcome] {
    if (const auto done = bench_serve(*command); !done) outcome.report(done.error());
  });
}

}  // namespace octavo
