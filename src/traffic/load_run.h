// Sends prompts to an OpenAI-compatible server as they are due, and notes when its answers come.
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
  bool chat = false;         // `messages` instead of `prompt`
  http::Headers headers;     // beside Content-Type
  std::string model;         // as requests name it
  boost::json::object body;  // further fields of each request, which go before all others
  int max_concurrency = 0;   // requests sent and not ended; 0: no limit
};

// One request's end.
struct LoadAnswer {
  AnswerTimes times;
  std::vector<std::int64_t> gaps_us;  // between the pieces after the first one
  std::string text;
  std::string error;  // empty: completed
};

struct LoadResult {
  std::vector<LoadAnswer> answers;  // of each prompt
  double seconds = 0;               // from the first due time to the last end
};

// due_us: when each prompt is sent at the earliest, in order, from the start of the run. ended: called for
// each answer, on the client's thread. A request that fails is an answer with an error; the run goes on.
LoadResult run_load(std::span<const Prompt> prompts, std::span<const std::int64_t> due_us,
                    const LoadOptions& options, const std::function<void(std::size_t ended)>& ended);

}  // namespace octavo::traffic
