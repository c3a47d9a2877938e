// Common code of `octavo bench serve`, `bench sweep` and `tune`, which measure a running server.
#pragma once

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"
#include "traffic/arrivals.h"
#include "traffic/dataset.h"
#include "traffic/figures.h"
#include "traffic/load_run.h"

namespace octavo {

struct LoadFlags {
  std::string backend = "openai";
  std::string base_url;
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;
  std::string endpoint;
  std::string model;
  std::string served_model_name;
  std::string tokenizer;
  int ready_check_timeout_s = 600;

  traffic::DatasetOptions dataset;
  double burstiness = 1;
  int max_concurrency = 0;

  bool ignore_eos = false;
  double temperature = -1;
  double top_p = -1;
  int top_k = -1;
  std::string extra_body;
};

// Adds all flags except --num-prompts.
void add_load_flags(CLI::App& app, LoadFlags& flags);

// A running server, and how to send requests to it.
struct LoadTarget {
  traffic::LoadOptions options;
  std::string tokenizer_at;
  Tokenizer tokenizer;
};

// Waits until the server lists a model. Errors name the flag or contain the server's message.
Result<LoadTarget> find_target(const LoadFlags& flags);

Result<std::vector<traffic::Prompt>> load_prompts(const traffic::DatasetOptions& options,
                                                  const LoadTarget& target);

// Sends one prompt, so that an error that affects all requests is reported once, and then `warmups`
// requests. Returns invalid_argument with the server's message.
Result<> try_out(const std::vector<traffic::Prompt>& prompts, int warmups, const LoadTarget& target);

// Result of measure_load(): the responses, and the figures. The run shows a progress bar. For due_us, see
// run_load().
struct MeasuredLoad {
  traffic::LoadResult run;
  boost::json::object figures;
};
MeasuredLoad measure_load(const std::vector<traffic::Prompt>& prompts, std::span<const std::int64_t> due_us,
                          const LoadTarget& target, const traffic::Goodput& goodput,
                          std::span<const double> percentiles);

// If requests have failed, returns an error with their number and the first message.
Result<> none_failed(const traffic::LoadResult& run);

}  // namespace octavo
