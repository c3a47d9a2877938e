// Common parts of the commands that measure a running server: the server, the requests, one measured run.
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

// As on the command line.
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

// All but --num-prompts.
void add_load_flags(CLI::App& app, LoadFlags& flags);

// A running server, and the form of requests to it.
struct LoadTarget {
  traffic::LoadOptions options;
  std::string tokenizer_at;
  Tokenizer tokenizer;
};

// Waits until the server lists a model. Errors name the flag, or say what the server said.
Result<LoadTarget> find_target(const LoadFlags& flags);

// As `options` say, and as the target takes them.
Result<std::vector<traffic::Prompt>> load_prompts(const traffic::DatasetOptions& options,
                                                  const LoadTarget& target);

// Asks one of the prompts, so that what is wrong with all of them is said once; then `warmups` requests.
// Errors: invalid_argument with the server's words.
Result<> try_out(const std::vector<traffic::Prompt>& prompts, int warmups, const LoadTarget& target);

// One run, with a progress bar, and its figures.
struct MeasuredLoad {
  traffic::LoadResult run;
  boost::json::object figures;
};
MeasuredLoad measure_load(const std::vector<traffic::Prompt>& prompts,
                          const traffic::ArrivalOptions& arrivals, const LoadTarget& target,
                          const traffic::Goodput& goodput, std::span<const double> percentiles);

// An error where requests failed: how many, and what the first of them came to.
Result<> none_failed(const traffic::LoadResult& run);

}  // namespace octavo
