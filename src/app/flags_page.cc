#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/serve_flags.h"
#include "local/vllm_flags.h"
#include "local/vllm_variables.h"

namespace octavo {
namespace {

constexpr std::string_view kHead = R"(# Flags of `vllm serve`

`octavo serve --list-flags` prints this page. Every flag of vLLM 0.33's `vllm serve`, and some of earlier versions:

- **works**: the note says what it does.
- **no effect**: accepted, with a line in the log, because it is already so or means nothing here; where values are listed, only
  they are accepted.
- **always on**: cannot be turned off.
- **refused**: the server does not start, and says why.

Names may have underscores; values may be `--flag=value`; integers may be `32k` (32,000) or `32K` (32,768). The last of
repeated flags counts; every switch has a `--no-` form; fields of JSON may be given one by one (`--speculative-config.method ngram`).
`--config file.yaml` holds the same names; the command line wins. An unknown flag is an error that names the nearest one.
Environment variables: [environment](environment.md).

)";

constexpr std::string_view kEnvironmentHead = R"(# Environment variables

`octavo serve --list-environment` prints this page. A flag on the command line wins over its variable. At the start the log names
each `VLLM_` variable that has no effect, and each that vLLM does not have, with the name that may be meant.

| variable | |
|---|---|
)";

constexpr VllmVariable kOwnVariables[] = {
    {"AWS_ACCESS_KEY_ID",
     "key of a KV store that takes signed requests (S3); with AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN"},
    {"AWS_REGION", "its region; or AWS_DEFAULT_REGION"},
    {"HF_TOKEN", "token for downloads; others of the hub: [models by name](models.md#models-by-name)"},
    {"LMCACHE_CONFIG_FILE", "file of settings for LMCacheConnectorV1"},
    {"LMCACHE_*", "those settings one by one, as LMCACHE_MAX_LOCAL_CPU_SIZE; they win over the file"},
    {"OCTAVO_API_KEY", "as --api-key"},
    {"OMPI_COMM_WORLD_RANK, PMI_RANK ..", "the process among those that mpirun has started"},
    {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
     "protocol of --otlp-traces-endpoint: grpc, http/protobuf or http/json; by default grpc for "
     "grpc://HOST:PORT, "
     "else http/json"},
    {"OTEL_SERVICE_NAME", "name of the service in spans"},
    {"SLURM_NODEID ..", "the host among those of a job"},
};

// Escapes vertical bars, which end a cell of a table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) c == '|' ? out += "\\|" : out += c;
  return out;
}

std::string described(const CLI::Option& option) {
  const std::string value = option.get_default_str();
  const bool shown = option.get_expected_max() != 0 && !value.empty();
  return cell(option.get_description() + (shown ? fmt::format(" (default: {})", value) : ""));
}

std::string verdict(const VllmFlag& flag) {
  if (flag.works || !flag.stands_for.empty()) return "works";
  if (flag.harmless == "*") return "no effect";
  if (flag.harmless == "true") return "always on";
  if (flag.harmless.empty() || flag.takes == Takes::nothing) return "refused";
  std::string values;
  for (const char c : flag.harmless) c == '|' ? values += "`, `" : values += c;
  return fmt::format("no effect: `{}`", values);
}

std::string row(const VllmVariable& variable) {
  return fmt::format("| `{}` | {} |\n", variable.name, cell(variable.effect));
}

}  // namespace

std::string environment_page() {
  std::string page(kEnvironmentHead);
  for (const VllmVariable& variable : kOwnVariables) page += row(variable);
  for (const VllmVariable& variable : read_vllm_variables()) page += row(variable);
  page += "\n## Without effect\n\n```text\n";
  for (const std::string_view name : other_vllm_variables()) page += fmt::format("{}\n", name);
  return page + "```\n";
}

std::string flags_page(const CLI::App& serve) {
  std::map<std::string_view, const VllmFlag*> by_name;
  for (const VllmFlag& flag : vllm_flags()) by_name[flag.name] = &flag;
  std::string page(kHead);
  page += "| flag | verdict | |\n|---|---|---|\n";
  for (const auto& [name, flag] : by_name) {
    const CLI::Option* option = serve.get_option_no_throw(std::string(name));
    const std::string shorthand = flag->shorthand.empty() ? "" : fmt::format(", `{}`", flag->shorthand);
    page += fmt::format("| `{}`{} | {} | {} |\n", name, shorthand, verdict(*flag),
                        flag->works && option != nullptr ? described(*option) : cell(flag->reason));
  }
  page += "\n## Octavo's own\n\n| flag | |\n|---|---|\n";
  for (const CLI::Option* option : serve.get_options()) {
    const std::string name = "--" + option->get_single_name();
    if (by_name.contains(name) || name.starts_with("--help") || name.starts_with("--list-") ||
        option->get_group().empty())
      continue;
    page += fmt::format("| `{}` | {} |\n", name, described(*option));
  }
  return page;
}

}  // namespace octavo
