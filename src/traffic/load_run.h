// Sends prompts to an OpenAI-compatible server at given times, and records when responses arrive.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "http/async_client.h"
#include "traffic/dataset.h"
#include "traffic/figures.h"

namespace octavo::traffic {

struct LoadOptions {
  http::Address server;
  std::string endpoint = "/v1/completions";
  bool chat = false;         // send `messages` instead of `prompt`
  http::Headers headers;     // in addition to Content-Type
  std::string model;         // model name in requests
  boost::json::object body;  // additional fields of each request; they replace all others of the same name
  int max_concurrency = 0;   // maximum number of requests in flight; 0 for no limit
};

struct LoadAnswer {
  AnswerTimes times;
  std::vector<std::int64_t> gaps_us;  // times between chunks, after the first chunk
  std::string text;
  std::string error;  // empty: the request was completed
};

struct LoadResult {
  std::vector<LoadAnswer> answers;  // one answer for each prompt
  double seconds = 0;               // time from the first send to the last end
};

// due_us: earliest send time of each prompt, from the start of the run, ascending. ended: called for each
// response, on the client's thread. If a request fails, its LoadAnswer has an error and the run continues.
LoadResult run_load(std::span<const Prompt> prompts, std::span<const std::int64_t> due_us,
                    const LoadOptions& options, const std::function<void(std::size_t ended)>& ended);

}  // namespace octavo::traffic
