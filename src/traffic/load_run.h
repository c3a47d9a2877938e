// Sends prompts to an OpenAI-compatible server at given times, and records when the chunks of the responses
// arrive.
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
  bool chat = false;      // whether to send `messages` instead of `prompt`
  http::Headers headers;  // in addition to Content-Type
  std::string model;
  // more fields of each request; they override others of the same name
  boost::json::object body;
  int max_concurrency = 0;  // limit of requests in flight; 0: no limit
};

struct LoadAnswer {
  AnswerTimes times;
  std::vector<std::int64_t> gaps_us;  // times between chunks
  std::string text;
  std::string error;  // "": the response is complete
};

struct LoadResult {
  std::vector<LoadAnswer> answers;  // one for each prompt
  double seconds = 0;               // from the first request to the end of the last response
};

// due_us: earliest time to send each prompt, from the start of the run, ascending. ended: called after each
// response on the client's thread. The run continues after a failed request, whose LoadAnswer has the
// error.
LoadResult run_load(std::span<const Prompt> prompts, std::span<const std::int64_t> due_us,
                    const LoadOptions& options, const std::function<void(std::size_t ended)>& ended);

}  // namespace octavo::traffic
