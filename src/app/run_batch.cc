// octavo run-batch: reads a file of requests and writes a file of responses, as `vllm run-batch` (OpenAI's
// batch format). It starts a server in this process, so all routes are available.
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/engine_command.h"
#include "app/serve_flags.h"
#include "app/serving.h"
#include "batches/line.h"
#include "batches/line_runner.h"
#include "batches/service.h"
#include "local/progress.h"

namespace octavo {
namespace {

struct RunBatchCommand {
  ServeCommand serve;
  std::string input;
  std::string output;
};

Result<std::vector<batches::Line>> read_input(const std::string& path) {
  batches::LineReader file(path);
  if (!file.is_open())
    return field_failure("input-file", ErrorCode::not_found, "cannot read the file {}", path);
  std::vector<batches::Line> lines;
  std::set<std::string> ids;
  while (const auto text = file.next()) {
    std::string custom_id;
    auto line = batches::read_line(text->text, custom_id);
    if (!line)
      return invalid("input-file", "line {}: {}{}{}", text->number, line.error().field,
                     line.error().field.empty() ? "" : " ", line.error().message);
    if (!ids.insert(custom_id).second)
      return invalid("input-file", "line {}: the custom_id \"{}\" is already used in an earlier line",
                     text->number, custom_id);
    lines.push_back(*std::move(line));
  }
  if (!file.complete())
    return field_failure("input-file", ErrorCode::io, "cannot read the whole file {}", path);
  return lines;
}

// Writes the responses in the order of the lines. Returns the number of responses with a status other than
// 200.
std::size_t run_lines(const std::vector<batches::Line>& lines, const std::shared_ptr<Service>& service,
                      int concurrency, std::ofstream& output) {
  constexpr int kWaitMs = 60'000;
  batches::LineRunner runner(batches::serve_host(service), http::Request::Origin::process);
  ProgressBar bar("batch", "requests", 1);
  std::map<std::size_t, std::string> ended;  // responses that wait for earlier ones
  std::size_t next = 0, written = 0, failed = 0;
  while (written < lines.size()) {
    for (; next < lines.size() && runner.open() < concurrency; ++next)
      runner.start({.batch = "", .number = static_cast<std::int64_t>(next), .line = lines[next]}, "");
    for (const auto& [job, response] : runner.wait(kWaitMs)) {
      failed += response.status != 200;
      ended[static_cast<std::size_t>(job.number)] =
          batches::output_line(job.line.custom_id, response.status, response.body);
    }
    for (; !ended.empty() && ended.begin()->first == written; ++written) {
      output << ended.begin()->second << '\n';
      ended.erase(ended.begin());
    }
    output.flush();
    bar.show(written + ended.size(), lines.size());
  }
  bar.finish();
  return failed;
}

Result<> run_batch(RunBatchCommand& c) {
  TRY_VOID(take_data_parallel(c.serve.data_parallel, false, c.serve.runtime));
  if (c.serve.child.runs_engine) return run_engine(std::move(c.serve.runtime), c.serve.child.rank, false);
  if (c.serve.models.given())
    return invalid("models", "octavo run-batch runs one model: run it once for each model");
  TRY(const std::vector<batches::Line> lines, read_input(c.input));
  std::ofstream output(c.output);
  if (!output) return field_failure("output-file", ErrorCode::io, "cannot write the file {}", c.output);
  // A random key, so that no other client can use the server.
  c.serve.runtime.serve.access.api_keys.push_back(batches::random_hex());
  const int concurrency = 2 * c.serve.runtime.engine.schedule.max_num_seqs;
  c.serve.http.tls = {};  // no TLS, because this process is the only client
  c.serve.http.uds.clear();
  TRY(const Serving serving, start_serving(c.serve));
  const std::size_t failed = run_lines(lines, serving.runtime->service, concurrency, output);
  serving.server->stop(c.serve.shutdown_timeout_s * 1000);
  if (!output.flush())
    return field_failure("output-file", ErrorCode::io, "cannot write the file {}", c.output);
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
  command
      ->add_option("-i,--input-file", options->input,
                   "File of requests: JSON lines with custom_id, method, url and body")
      ->required();
  command
      ->add_option("-o,--output-file", options->output,
                   "File to which the answers are written as JSON lines, in the order of the requests")
      ->required();
  outcome.runs(*command, options, run_batch);
}

}  // namespace octavo
