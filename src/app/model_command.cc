// octavo model inspect MODEL
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "app/commands.h"
#include "app/engine_flags.h"
#include "kernels/backends.h"
#include "model/inspect.h"

namespace octavo {
namespace {

Result<std::string> inspect_dir(std::string dir) {
  if (dir.empty()) {
    TRY(dir, demo_model_dir());
  }
  TRY(const Backend backend, make_cpu_backend({.threads = 1, .isa = {}}));
  return inspect(dir, backend.ops);
}

}  // namespace

void add_model(CLI::App& program, Outcome& outcome) {
  CLI::App* model = program.add_subcommand("model", "Look at checkpoints");
  model->require_subcommand(1);
  CLI::App* command = model->add_subcommand(
      "inspect", "Print what a checkpoint is: layers, parameters, memory, KV bytes per token, roofline");
  auto dir = std::make_shared<std::string>();
  command->add_option("model,--model", *dir,
                      "Folder of the checkpoint, or a GGUF file; the demo model when left out");
  command->callback([dir, &outcome] {
    if (const auto text = inspect_dir(*dir)) {
      fmt::print("{}", *text);
    } else {
      outcome.report(text.error());
    }
  });
}

}  // namespace octavo
