// octavo run-batch: reads a file of requests and writes a file of replies, like `vllm run-batch` (OpenAI's
// batch format). Sends the requests to an HTTP server in this process, so that every route is available.
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/engine_command.h"
#include "app/serve_flags.h"
#include "app/serving.h"
#include "http/async_client.h"
#include "local/progress.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr int kTimeoutMs = 24 * 3'600'000;  // of one reply
constexpr int kTriesAlone = 100;            // while no other request is in flight
constexpr int kRetryMs = 50;                // after a reply that the server is full

struct RunBatchCommand {
  ServeCommand serve;
  std::string input;
  std::string output;
};

struct Line {
  std::string custom_id;
  std::string url;
  std::shared_ptr<const std::string> body;
};

std::string random_hex() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

Result<Line> read_line(const std::string& text, std::size_t number) {
  const auto wrong = [&](std::string_view what) {
    return field_failure("input-file", ErrorCode::invalid_argument, "line {}: {}", number, what);
  };
  boost::system::error_code bad;
  const json::value parsed = json::parse(text, bad);
  if (bad || !parsed.is_object()) return wrong("is no JSON object");
  const json::object& object = parsed.get_object();
  const auto field = [&](std::string_view name) -> const json::string* {
    const json::value* value = object.if_contains(name);
    return value == nullptr ? nullptr : value->if_string();
  };
  const json::string *id = field("custom_id"), *method = field("method"), *url = field("url");
  const json::value* body = object.if_contains("body");
  if (id == nullptr) return wrong("custom_id must be a string");
  if (method == nullptr || *method != "POST") return wrong("method must be \"POST\"");
  if (url == nullptr || !url->starts_with('/'))
    return wrong("url must be a path such as /v1/chat/completions");
  if (body == nullptr || !body->is_object()) return wrong("body must be a JSON object");
  const json::value* stream = body->get_object().if_contains("stream");
  if (stream != nullptr && *stream != false)
    return wrong("body.stream must be false: answers go into a file");
  return Line{std::string(*id), std::string(*url),
              std::make_shared<const std::string>(json::serialize(*body))};
}

Result<std::vector<Line>> read_input(const std::string& path) {
  std::ifstream file(path);
  if (!file) return field_failure("input-file", ErrorCode::not_found, "cannot read {}", path);
  std::vector<Line> lines;
  std::set<std::string> ids;
  std::string text;
  for (std::size_t number = 1; std::getline(file, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    TRY(Line line, read_line(text, number));
    if (!ids.insert(line.custom_id).second)
      return invalid("input-file", "line {}: custom_id \"{}\" was there before", number, line.custom_id);
    lines.push_back(std::move(line));
  }
  if (!file.eof()) return field_failure("input-file", ErrorCode::io, "cannot read all of {}", path);
  return lines;
}

// Result of one request, as a line of the output.
struct OutputLine {
  int status = 0;
  std::string body;
  std::string error;  // there was no reply

  std::string line(const std::string& custom_id) const {
    boost::system::error_code bad;
    json::value parsed = json::parse(body, bad);
    if (bad) parsed = json::string(body);
    const bool good = error.empty() && status == 200;
    json::value failed;
    if (!good) failed = error.empty() ? parsed : json::value{{"message", error}};
    json::value response;
    if (error.empty())
      response = {{"status_code", status},
                  {"request_id", "octavo-batch-" + random_hex()},
                  {"body", good ? parsed : json::value()}};
    return json::serialize(json::object{{"id", "octavo-" + random_hex()},
                                        {"custom_id", custom_id},
                                        {"response", std::move(response)},
                                        {"error", std::move(failed)}});
  }
};

// Writes replies in the order of the requests, each once all earlier ones are written. Runs on the client's
// thread.
class Batch {
 public:
  Batch(const std::vector<Line>& lines, http::Address server, const std::string& key, int concurrency,
        std::ofstream& output)
      : lines_(lines), server_(std::move(server)), key_(key), concurrency_(concurrency), output_(output) {}

  // Returns the number of requests without status 200.
  std::size_t run() {
    if (lines_.empty()) return 0;
    loop_.post([this] { send_more(); });
    over_.get_future().wait();
    bar_.finish();
    return failed_;
  }

 private:
  void send_more() {
    while (next_ < lines_.size() && open_ < concurrency_) {
      ++open_;
      send(next_++);
    }
  }

  void send(std::size_t i) {
    auto answer = std::make_shared<OutputLine>();
    http::CallRequest request{.address = server_,
                              .method = "POST",
                              .target = lines_[i].url,
                              .headers = {},
                              .body = lines_[i].body,
                              .timeout_ms = kTimeoutMs};
    request.headers.add("Content-Type", "application/json");
    request.headers.add("Authorization", "Bearer " + key_);
    loop_.call(std::move(request), {.head = [answer](http::Response head) { answer->status = head.status; },
                                    .body = [answer](std::string_view piece) { answer->body += piece; },
                                    .end =
                                        [this, i, answer](Result<> result) {
                                          if (!result) answer->error = result.error().message;
                                          end(i, *answer);
                                        }});
  }

  void end(std::size_t i, OutputLine& answer) {
    if (answer.status == 429 && may_try_again()) {
      ++retrying_;
      loop_.after(kRetryMs, [this, i] {
        --retrying_;
        send(i);
      });
      return;
    }
    tries_alone_ = 0;
    --open_;
    failed_ += !answer.error.empty() || answer.status != 200;
    ended_[i] = answer.line(lines_[i].custom_id);
    for (; !ended_.empty() && ended_.begin()->first == written_; ++written_) {
      output_ << ended_.begin()->second << '\n';
      ended_.erase(ended_.begin());
    }
    output_.flush();
    bar_.show(written_ + ended_.size(), lines_.size());
    if (written_ == lines_.size()) {
      over_.set_value();
    } else {
      send_more();
    }
  }

  // Other requests of this batch fill the server, so a retry can succeed. If none is in flight, the server
  // stays full.
  bool may_try_again() { return open_ - retrying_ > 1 || ++tries_alone_ < kTriesAlone; }

  const std::vector<Line>& lines_;
  http::Address server_;
  std::string key_;
  int concurrency_;
  std::ofstream& output_;
  ProgressBar bar_{"batch", "requests", 1};
  std::promise<void> over_;
  std::size_t next_ = 0, written_ = 0, failed_ = 0;
  int open_ = 0, retrying_ = 0;  // retrying_ counts a part of open_
  int tries_alone_ = 0;
  std::map<std::size_t, std::string> ended_;  // finished, not yet written
  http::AsyncClient client_{{}};  // declared last, so destroyed first: its thread calls the other members
  http::ClientLoop& loop_ = client_.next_loop();
};

Result<> run_batch(RunBatchCommand& c) {
  TRY_VOID(take_data_parallel(c.serve.data_parallel, false, c.serve.runtime));
  if (c.serve.child.runs_engine) return run_engine(std::move(c.serve.runtime), c.serve.child.rank, false);
  TRY(const std::vector<Line> lines, read_input(c.input));
  std::ofstream output(c.output);
  if (!output) return field_failure("output-file", ErrorCode::io, "cannot write {}", c.output);
  const std::string key = random_hex();
  c.serve.runtime.serve.access.api_keys.push_back(key);
  const int concurrency = 2 * c.serve.runtime.engine.max_num_seqs;
  c.serve.http.tls = {};  // its only client is this process
  c.serve.http.uds.clear();
  TRY(const Serving serving, start_serving(c.serve));
  const std::size_t failed =
      Batch(lines, {"127.0.0.1", serving.server->port()}, key, concurrency, output).run();
  serving.server->stop(c.serve.shutdown_timeout_s * 1000);
  if (!output.flush()) return field_failure("output-file", ErrorCode::io, "cannot write {}", c.output);
  fmt::print(stderr, "{} requests, {} of them failed; answers in {}\n", lines.size(), failed, c.output);
  return {};
}

}  // namespace

void add_run_batch(CLI::App& program, Outcome& outcome) {
  CLI::App* command =
      program.add_subcommand("run-batch", "Answer a file of requests in OpenAI's batch format");
  auto options = std::make_shared<RunBatchCommand>();
  add_serve_flags(*command, options->serve);
  options->serve.http.host = "127.0.0.1";
  options->serve.http.port = 0;
  command->add_option("-i,--input-file", options->input, "JSON lines with custom_id, method, url and body")
      ->required();
  command->add_option("-o,--output-file", options->output, "Answers as JSON lines, in the same order")
      ->required();
  command->callback([options, &outcome] {
    if (const auto done = run_batch(*options); !done) outcome.report(done.error());
  });
}

}  // namespace octavo
