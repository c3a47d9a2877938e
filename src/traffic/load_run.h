// Sends prompts to an OpenAI-compatible server at given times, and records the times of the responses.
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
  http::Headers headers;     // headers in addition to Content-Type
  std::string model;
  boost::json::object body;  // further fields of each request, which replace others of the same name
  int max_concurrency = 0;   // maximum number of requests in flight; 0: no limit
};

struct LoadAnswer {
  AnswerTimes times;
  std::vector<std::int64_t> gaps_us;  // times between chunks
  std::string text;
  std::string error;  // "": the request is complete
};

struct LoadResult {
  std::vector<LoadAnswer> answers;  // [prompt]
  double seconds = 0;               // time from the first request to the last end
};

// due_us: earliest send time of each prompt, from the start of the run, ascending. ended: called after each
// response, on the client's thread. A failed request has an error in its LoadAnswer, and the run continues.
LoadResult run_load(std::span<const Prompt> prompts, std::span<const std::int64_t> due_us,
                    const LoadOptions& options, const std::function<void(std::size_t ended)>& ended);

}  // namespace octavo::traffic
