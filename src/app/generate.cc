// octavo generate: runs prompts on an engine in this process.
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/environment.h"
#include "app/sampling_flags.h"
#include "base/clock.h"
#include "local/engine_flags.h"
#include "local/local_generation.h"
#include "local/progress.h"
#include "local/runtime.h"

namespace octavo {
namespace {

using boost::json::object;

struct GenerateCommand {
  RuntimeOptions runtime;
  object sampling;
  std::vector<std::string> prompts;
  std::string input;
  std::string output;
  bool chat = false;
  std::map<std::string, std::string> constraints;  // by field of structured_outputs
  std::vector<std::string> choices;
};

object prompt_body(const std::string& text, bool chat) {
  if (!chat) return {{"prompt", text}};
  return {{"messages", {{{"role", "user"}, {"content", text}}}}};
}

struct ConstraintFlag {
  const char* flag;
  const char* field;
  const char* help;
};
constexpr ConstraintFlag kConstraints[] = {
    {"--json-schema", "json", "JSON Schema of each answer"},
    {"--regex", "regex", "Regular expression that each answer must match"},
    {"--grammar", "grammar", "Grammar of each answer, in GBNF or Lark"},
};

// If the value begins with @, returns the contents of the file.
Result<std::string> text_or_file(const std::string& value, std::string_view flag) {
  if (!value.starts_with('@')) return value;
  std::ifstream file(value.substr(1));
  if (!file) return field_failure(flag, ErrorCode::not_found, "cannot read the file {}", value.substr(1));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Result<> add_constraint(const GenerateCommand& c, std::vector<object>& bodies) {
  object constraint;
  for (const auto& [field, value] : c.constraints) {
    TRY(constraint[field], text_or_file(value, field));
  }
  if (!c.choices.empty()) constraint["choice"] = boost::json::array(c.choices.begin(), c.choices.end());
  if (constraint.empty()) return {};
  for (object& body : bodies) body.emplace("structured_outputs", constraint);
  return {};
}

// Each line of a .jsonl file is a body; each line of other files is a prompt. "-": standard input.
Result<std::vector<object>> read_bodies(const GenerateCommand& c) {
  std::vector<object> bodies;
  for (const std::string& prompt : c.prompts) bodies.push_back(prompt_body(prompt, c.chat));
  if (c.input.empty()) return bodies;

  std::ifstream file;
  if (c.input != "-") {
    file.open(c.input);
    if (!file) return field_failure("input", ErrorCode::not_found, "cannot read the file {}", c.input);
  }
  const bool json = c.input.ends_with(".jsonl");
  std::istream& in = c.input == "-" ? std::cin : file;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    if (!json) {
      bodies.push_back(prompt_body(line, c.chat));
      continue;
    }
    boost::system::error_code error;
    boost::json::value value = boost::json::parse(line, error);
    if (error || !value.is_object())
      return invalid("input", "line {} of {} is not a JSON object", number, c.input);
    bodies.push_back(std::move(value.as_object()));
  }
  return bodies;
}

struct Job {
  GenerationPlan plan;
  std::optional<LocalGeneration> generation;
  std::map<int, openai::AnswerPart> answers;
};

object result_json(std::size_t number, const Job& job) {
  boost::json::array choices;
  std::int64_t tokens = 0;
  for (const auto& [index, answer] : job.answers) {
    choices.push_back({{"index", index},
                       {"text", answer.text},
                       {"finish_reason", openai::finish_reason_json(answer.finish)},
                       {"stop_reason", openai::stop_reason_json(answer.stop_reason)}});
    tokens += static_cast<std::int64_t>(answer.token_ids.size());
  }
  return {{"index", number},
          {"choices", std::move(choices)},
          {"usage", {{"prompt_tokens", job.generation->prompt_tokens()}, {"completion_tokens", tokens}}}};
}

std::string heading(std::size_t number, int index, std::size_t answers) {
  return answers > 1 ? fmt::format("--- prompt {}, answer {}\n", number + 1, index + 1)
                     : fmt::format("--- prompt {}\n", number + 1);
}

// Runs bodies concurrently, up to the engine's limit. Delivers results in order.
class BatchRun {
 public:
  BatchRun(Service& service, std::vector<object> bodies) : service_(service), bodies_(std::move(bodies)) {}

  template <class Done>
  Result<> run(Done&& done) {
    ProgressBar bar("generating", "prompts", 1);
    std::size_t written = 0;
    while (written < bodies_.size()) {
      TRY_VOID(submit_more());
      Arrivals::Arrival arrival;
      if (!arrivals_.pop(arrival, 1000)) continue;
      const auto job = jobs_.find(arrival.job);
      if (job == jobs_.end()) continue;  // The job was removed, because a stop string has ended it.
      openai::AnswerPart part = job->second.generation->take(std::move(arrival.output));
      tokens_ += static_cast<std::int64_t>(part.token_ids.size());
      job->second.answers[part.index].append(std::move(part));
      for (auto first = jobs_.find(written); first != jobs_.end() && first->second.generation->finished();
           first = jobs_.find(written)) {
        done(written++, first->second);
        jobs_.erase(first);
      }
      bar.show(written, bodies_.size());
    }
    return {};
  }

  std::int64_t tokens() const { return tokens_; }

 private:
  // Jobs that have not ended, or whose result was not delivered.
  static constexpr std::size_t kJobsMax = 1024;

  Result<> submit_more() {
    while (submitted_ < bodies_.size() && jobs_.size() < kJobsMax) {
      TRY(GenerationPlan plan, plan_body(service_, bodies_[submitted_]));
      Job& job = jobs_.emplace(submitted_, Job{std::move(plan), {}, {}}).first->second;
      auto generation = LocalGeneration::start(service_, job.plan, submitted_, arrivals_);
      if (!generation) {
        const bool full = generation.error().code == ErrorCode::resource_exhausted && jobs_.size() > 1;
        jobs_.erase(submitted_);
        if (full) return {};
        return std::unexpected(generation.error());
      }
      job.generation = std::move(*generation);
      ++submitted_;
    }
    return {};
  }

  Service& service_;
  std::vector<object> bodies_;
  Arrivals arrivals_;
  std::map<std::size_t, Job> jobs_;
  std::size_t submitted_ = 0;
  std::int64_t tokens_ = 0;
};

Result<> generate(GenerateCommand& c) {
  TRY(std::vector<object> bodies, read_bodies(c));
  if (bodies.empty()) return invalid("prompt", "must be given: use -p TEXT or --input FILE");
  for (object& body : bodies)
    for (const auto& field : c.sampling)
      if (!body.contains(field.key())) body.emplace(field.key(), field.value());
  TRY_VOID(add_constraint(c, bodies));
  std::ofstream file;
  if (!c.output.empty()) {
    file.open(c.output);
    if (!file) return field_failure("output", ErrorCode::io, "cannot write the file {}", c.output);
  }

  TRY(const auto runtime, start_runtime(std::move(c.runtime)));
  const bool plain = c.output.empty() && !c.input.ends_with(".jsonl");
  const std::size_t count = bodies.size();
  BatchRun batch(*runtime->service, std::move(bodies));
  const std::int64_t started = now_us();
  TRY_VOID(batch.run([&](std::size_t number, const Job& job) {
    if (plain) {
      for (const auto& [index, answer] : job.answers) {
        if (count > 1 || job.answers.size() > 1) fmt::print("{}", heading(number, index, job.answers.size()));
        fmt::print("{}\n", answer.text);
      }
    } else {
      const std::string line = boost::json::serialize(result_json(number, job));
      c.output.empty() ? fmt::print("{}\n", line) : void(file << line << '\n');
    }
  }));
  if (file.is_open() && !file.flush())
    return field_failure("output", ErrorCode::io, "cannot write the file {}", c.output);
  const double seconds = static_cast<double>(now_us() - started) * 1e-6;
  fmt::print(stderr, "{} prompts, {} tokens in {:.2f} s: {:.1f} tokens/s\n", count, batch.tokens(), seconds,
             static_cast<double>(batch.tokens()) / seconds);
  return {};
}

}  // namespace

void add_generate(CLI::App& program, Outcome& outcome) {
  CLI::App* command =
      program.add_subcommand("generate", "Complete prompts from arguments or a file, in batches");
  auto options = std::make_shared<GenerateCommand>();
  add_engine_flags(*command, options->runtime.engine);
  add_hub_flags(*command, options->runtime.hub, environment);
  add_sampling_flags(*command, options->sampling);
  // One value for each flag, so that the argument after it is the model and not another prompt.
  command->add_option("-p,--prompt", options->prompts, "Prompt; can be given several times")
      ->allow_extra_args(false);
  command->add_option("-i,--input", options->input,
                      "File with one prompt per line, or a .jsonl file with one request body per line; - "
                      "means standard input");
  command->add_option("-o,--output", options->output, "File to which the results are written as JSON lines");
  command->add_flag("--chat", options->chat, "Send each prompt as a user message through the chat template");
  for (const ConstraintFlag& each : kConstraints)
    command
        ->add_option_function<std::string>(
            each.flag,
            [options = options.get(), each](const std::string& value) {
              options->constraints[each.field] = value;
            },
            fmt::format("{}; @FILE reads it from a file", each.help))
        ->group("Structured output");
  command
      ->add_option("--choice", options->choices,
                   "Text that an answer may be; given several times, the answer is one of them")
      ->allow_extra_args(false)
      ->group("Structured output");
  outcome.runs(*command, options, generate);
}

}  // namespace octavo
