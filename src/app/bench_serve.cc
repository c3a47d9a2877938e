// octavo bench serve: measures a running server under load. Flags and output have the names of `vllm bench
// serve`.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/bench_load.h"
#include "app/commands.h"
#include "local/flag_table.h"

namespace octavo {
namespace {

namespace json = boost::json;
using traffic::LoadAnswer;
using traffic::LoadResult;

struct ServeCommand : LoadFlags {
  std::string label;

  traffic::ArrivalOptions arrivals;
  std::string request_rate = "inf";
  std::string ramp_up = "none";
  int num_warmups = 0;

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
  if (text.empty() || *end != 0) return invalid(field, "\"{}\" is not a number", text);
  return value;
}

Result<std::vector<double>> percentiles_of(const ServeCommand& c) {
  std::vector<double> percentiles;
  for (const std::string& part : split(c.metric_percentiles)) {
    TRY(const double percent, number("metric-percentiles", part));
    if (!(percent >= 0 && percent <= 100))
      return invalid("metric-percentiles", "{} must be a percentile from 0 to 100", part);
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
  arrivals.burstiness = c.burstiness;
  if (c.ramp_up != "none") {
    arrivals.ramp_up = c.ramp_up == "linear" ? traffic::RampUp::linear : traffic::RampUp::exponential;
    if (c.request_rate != "inf") return invalid("ramp-up-strategy", "cannot be combined with --request-rate");
    if (arrivals.ramp_up_start <= 0 || arrivals.ramp_up_end <= 0)
      return invalid("ramp-up-strategy",
                     "needs --ramp-up-start-rps and --ramp-up-end-rps; both must be above 0");
  } else if (c.request_rate != "inf") {
    TRY(arrivals.request_rate, number("request-rate", c.request_rate));
    if (!(arrivals.request_rate > 0)) return invalid("request-rate", "{} must be above 0", c.request_rate);
  }
  return arrivals;
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
    std::string model(result.at("model_id").get_string());
    model = model.substr(model.rfind('/') + 1);
    name = fmt::format("{}-{}qps{}-{}-{}.json", c.label.empty() ? c.backend : c.label, c.request_rate,
                       c.max_concurrency > 0 ? fmt::format("-concurrency{}", c.max_concurrency) : "", model,
                       std::string_view(result.at("date").get_string()));
  }
  const std::filesystem::path path = std::filesystem::path(c.result_dir) / name;
  std::error_code ignored;
  std::filesystem::create_directories(c.result_dir, ignored);
  std::ofstream file(path, c.append_result ? std::ios::app : std::ios::trunc);
  file << json::serialize(result) << '\n';
  if (!file.flush())
    return field_failure("result-dir", ErrorCode::io, "cannot write the file {}", path.string());
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
  TRY(const traffic::ArrivalOptions arrivals, arrivals_of(c));
  TRY(const std::vector<double> percentiles, percentiles_of(c));
  TRY(const std::set<std::string> shown, shown_times(c));
  TRY(const traffic::Goodput goodput, traffic::Goodput::parse(c.goodput));
  json::object result{{"date", fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)))}};
  TRY_VOID(put_metadata(result, c.metadata));
  TRY(const LoadTarget target, find_target(c));
  TRY(const std::vector<traffic::Prompt> prompts, load_prompts(c.dataset, target));
  TRY_VOID(try_out(prompts, c.num_warmups, target));
  const MeasuredLoad measured =
      measure_load(prompts, traffic::arrival_times(prompts.size(), arrivals), target, goodput, percentiles);

  result["endpoint_type"] = c.backend;
  result["backend"] = c.backend;
  result["label"] = c.label.empty() ? json::value() : json::value(c.label);
  result["model_id"] = target.options.model;
  result["tokenizer_id"] = target.tokenizer_at;
  result["num_prompts"] = c.dataset.num_prompts;
  result["request_rate"] =
      arrivals.request_rate > 0 ? json::value(arrivals.request_rate) : json::value(c.request_rate);
  result["burstiness"] = arrivals.burstiness;
  result["max_concurrency"] = c.max_concurrency > 0 ? json::value(c.max_concurrency) : json::value();
  for (const auto& [key, value] : measured.figures) result[key] = value;
  print_result(result, shown, percentiles);
  if (c.save_detailed) put_details(result, measured.run);
  TRY_VOID(save(c, result));
  return none_failed(measured.run);
}

void add_flags(CLI::App& app, ServeCommand& c) {
  add_load_flags(app, c);
  app.add_option("--num-prompts", c.dataset.num_prompts, "Number of requests")
      ->check(number_between(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--label", c.label, "Name of this run in the result");

  app.add_option("--request-rate", c.request_rate, "Requests per second; inf sends all requests at once")
      ->capture_default_str();
  app.add_option("--ramp-up-strategy", c.ramp_up,
                 "How the request rate grows from --ramp-up-start-rps to --ramp-up-end-rps")
      ->check(CLI::IsMember({"none", "linear", "exponential"}))
      ->capture_default_str();
  add_number(app, "--ramp-up-start-rps", c.arrivals.ramp_up_start,
             "Requests per second at the beginning of the ramp");
  add_number(app, "--ramp-up-end-rps", c.arrivals.ramp_up_end, "Requests per second at the end of the ramp");
  app.add_option("--num-warmups", c.num_warmups, "Number of requests before the measurement begins")
      ->check(number_between(0, 1 << 20))
      ->capture_default_str();

  app.add_option("--percentile-metrics", c.percentile_metrics,
                 "Comma-separated times whose percentiles are printed: ttft, tpot, itl, e2el")
      ->capture_default_str();
  app.add_option("--metric-percentiles", c.metric_percentiles, "Comma-separated percentiles to print")
      ->capture_default_str();
  app.add_option(
      "--goodput", c.goodput,
      "Limits in milliseconds below which an answer counts for goodput: ttft:200 tpot:50 e2el:5000");
  app.add_option("--metadata", c.metadata, "KEY=VALUE to add to the result");
  app.add_flag("--save-result", c.save_result, "Write the result as JSON to a file");
  app.add_flag("--save-detailed", c.save_detailed,
               "Add the lengths, times and text of each request to the result");
  app.add_flag("--append-result", c.append_result, "Append to the file instead of replacing it");
  app.add_option("--result-dir", c.result_dir, "Folder of the result's file")->capture_default_str();
  app.add_option("--result-filename", c.result_filename,
                 "Name of the result's file (default: backend, rate, model and date)");
}

}  // namespace

void add_bench_serve(CLI::App& bench, Outcome& outcome) {
  CLI::App* serve = bench.add_subcommand(
      "serve", "Send requests to a running server, and measure throughput, TTFT, TPOT and ITL");
  auto command = std::make_shared<ServeCommand>();
  add_flags(*serve, *command);
  outcome.runs(*serve, command, bench_serve);
}

}  // namespace octavo
