// Fixture for tests of pooling models: the whole server, with FakeEngine.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "serve/serve_fixture.h"

namespace octavo {

class PoolingTest : public ServeTest {
 protected:
  // A classifier of pairs with a template. `read` gets the text of each prompt.
  void serve_pairs(std::string& read) {
    serve(
        [&read](const Request& r, int) {
          read.assign(r.prompt.begin(), r.prompt.end());
          return Script{.pooled = {0}};
        },
        [&](ServeOptions& options, http::ServerOptions&) {
          options.pooling.score_template = true;
          engine_->described = {
              .max_model_len = 40,
              .tasks = {.default_task = Task::classify, .pooled_size = 1, .labels = {"relevant"}}};
        });
  }
  // The model returns the vector (number of tokens, first token, 0) for each text.
  void serve_embedder(bool normalise = true) {
    serve(
        [](const Request& r, int) {
          return Script{.pooled = {static_cast<float>(r.prompt.size()), static_cast<float>(r.prompt[0]), 0}};
        },
        [&](ServeOptions& options, http::ServerOptions&) {
          options.rules.max_model_len = 20;
          engine_->described = {
              .architecture = "Embedder",
              .max_model_len = 20,
              .tasks = {.default_task = Task::embed, .pooled_size = 3, .normalise = normalise}};
        });
  }
  // The model's score is the number of tokens minus 10.
  void serve_reranker() {
    serve([](const Request& r, int) { return Script{.pooled = {static_cast<float>(r.prompt.size()) - 10}}; },
          [&](ServeOptions& options, http::ServerOptions&) {
            options.rules.max_model_len = 20;
            engine_->described = {.architecture = "Reranker",
                                  .max_model_len = 20,
                                  .tasks = {.default_task = Task::classify,
                                            .pooled_size = 1,
                                            .labels = {"relevant"},
                                            .score_activation = ScoreActivation::sigmoid}};
          });
  }
  std::string refusal(const std::string& path, const std::string& body, int status = 400) {
    const http::Response response = post(path, body);
    EXPECT_EQ(response.status, status) << response.body;
    return std::string(json::parse(response.body).at("error").at("message").as_string());
  }
  static std::vector<double> numbers(const json::value& list) {
    std::vector<double> all;
    for (const json::value& item : list.as_array()) all.push_back(item.to_number<double>());
    return all;
  }
  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
};

}  // namespace octavo
