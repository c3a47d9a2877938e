// octavo model inspect MODEL: describes a model. octavo model convert IN OUT: converts it. octavo model
// architectures: lists the supported ones.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "app/commands.h"
#include "app/environment.h"
#include "app/rank_plan.h"
#include "base/size_text.h"
#include "kernels/backends.h"
#include "local/find_model.h"
#include "local/flag_table.h"
#include "local/progress.h"
#include "model/convert.h"
#include "model/families/families.h"
#include "model/inspect.h"

namespace octavo {
namespace {

struct InspectFlags {
  std::string model;
  HubFlags hub;
  bool plan = false;
  RankPlanOptions ranks;
};

Result<std::string> inspect_model(const InspectFlags& flags) {
  TRY(const std::string dir, find_model(flags.model, flags.hub));
  if (flags.plan) return rank_plan(dir, flags.ranks);
  TRY(const Backend backend, make_cpu_backend({.threads = 1, .isa = {}}));
  return inspect(dir, backend);
}

struct ConvertFlags {
  std::string from;
  std::string to;
  std::string quantization;
  ConvertOptions options;
};

void add_convert(CLI::App& model, Outcome& outcome) {
  CLI::App* command = model.add_subcommand(
      "convert",
      "Quantise the weights of a checkpoint and write a new one, in the format of compressed-tensors");
  auto flags = std::make_shared<ConvertFlags>();
  command->add_option("in", flags->from, "Folder of the checkpoint")->required();
  command->add_option("out", flags->to, "Output folder; it must be new or empty")->required();
  command
      ->add_option("--quantization", flags->quantization,
                   "Format of the weights: int8 (one scale per row) or int4 (one scale per group of 128 "
                   "columns); the values equal those of --quantization")
      ->check(CLI::IsMember({"int8", "int4"}))
      ->required();
  command->add_flag(
      "--keep-embedding", flags->options.keep_embedding,
      "Do not quantise the embedding and the output matrix, because some engines cannot read them quantised");
  command->callback([flags, &outcome] {
    ProgressBar bar("converting", "MB", 1e6);
    ConvertOptions& options = flags->options;
    options.quantization = flags->quantization == "int8" ? Encoding::int8 : Encoding::int4;
    options.progress = [&bar](std::size_t done, std::size_t all) { bar.show(done, all); };
    const auto done = convert(flags->from, flags->to, options);
    bar.finish();
    if (!done) return outcome.report(done.error());
    fmt::print("wrote {:.1f} million parameters as {} to {}: {} (from {})\n",
               static_cast<double>(done->parameters) * 1e-6, flags->quantization, flags->to,
               size_text(done->bytes), size_text(done->bytes_before));
  });
}

void add_architectures(CLI::App& model) {
  model
      .add_subcommand("architectures",
                      "Print the values of `architectures` in config.json that are supported")
      ->callback([] {
        for (const Family& family : families())
          fmt::print("{}{}\n", family.architecture, family.text_only ? " (text only)" : "");
      });
}

}  // namespace

void add_model(CLI::App& program, Outcome& outcome) {
  CLI::App* model = program.add_subcommand("model", "Inspect and convert checkpoints");
  model->require_subcommand(1);
  add_architectures(*model);
  add_convert(*model, outcome);
  CLI::App* command = model->add_subcommand(
      "inspect", "Print the layers of a checkpoint, its parameters, memory, KV bytes per token and roofline");
  auto flags = std::make_shared<InspectFlags>();
  command->add_option(
      "model,--model", flags->model,
      "Folder of the checkpoint, a GGUF file, or a model of the Hub (default: the demo model)");
  command->add_flag("--plan", flags->plan,
                    "Print the layers and the memory of each rank; the next flags set the layout");
  RankPlanOptions& ranks = flags->ranks;
  const auto add_size = [&](const char* flag, int& size, const char* text) {
    command->add_option(flag, size, text)->check(number_between(1, 64))->capture_default_str();
  };
  add_size("--tensor-parallel-size", ranks.layout.tensor,
           "Number of ranks that divide every layer of a pipeline stage");
  add_size("--pipeline-parallel-size", ranks.layout.pipeline, "Number of pipeline stages");
  command->add_flag("--enable-expert-parallel", ranks.whole_experts,
                    "Give each rank whole experts instead of a part of every expert");
  command->add_option("--device", ranks.device,
                      "Device of each rank, such as h100; also prints the time of steps");
  add_hub_flags(*command, flags->hub, environment);
  command->callback([flags, &outcome] {
    if (const auto text = inspect_model(*flags)) {
      fmt::print("{}", *text);
    } else {
      outcome.report(text.error());
    }
  });
}

}  // namespace octavo
