#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/serve_flags.h"
#include "local/vllm_flags.h"
#include "local/vllm_variables.h"

namespace octavo {
namespace {

constexpr std::string_view kHead = R"(# Flags of `vllm serve`

`octavo serve --list-flags` prints this page. It contains every flag of vLLM 0.33's `vllm serve`, and some flags of earlier versions:

- **works**: the flag has an effect, which the note describes.
- **no effect**: the server accepts the flag, ignores it and logs a line; the note gives the reason. If the table lists values, the server
  accepts only these values.
- **always on**: the flag cannot be turned off.
- **refused**: the server does not start; the note gives the reason.

Names may contain underscores. A value may follow after a space or after `=`. An integer may be `32k` (32,000) or `32K` (32,768). If a flag is
repeated, the last one counts. Every switch has a `--no-` form. Fields of a JSON value can be set one by one
(`--speculative-config.method ngram`). `--config file.yaml` reads the same names from a file; the command line overrides the file. For an
unknown flag, the error names the most similar flag. [Environment variables](environment.md) are on a separate page.

)";

constexpr std::string_view kEnvironmentHead = R"(# Environment variables

`octavo serve --list-environment` prints this page. A flag on the command line overrides its variable. At the start, the server logs each
`VLLM_` variable that has no effect. It also logs each `VLLM_` variable that vLLM does not have, with the most similar name.

| variable | |
|---|---|
)";

constexpr VllmVariable kOwnVariables[] = {
    {"AWS_ACCESS_KEY_ID",
     "access key for a KV store that needs signed requests (S3); used with AWS_SECRET_ACCESS_KEY and "
     "AWS_SESSION_TOKEN"},
    {"AWS_REGION", "region of the S3 store; AWS_DEFAULT_REGION has the same effect"},
    {"HF_TOKEN",
     "token for downloads from the Hub. [Models by name](models.md#models-by-name) lists other variables of "
     "the Hub"},
    {"LMCACHE_CONFIG_FILE", "file with settings for LMCacheConnectorV1"},
    {"LMCACHE_*",
     "each setting of LMCacheConnectorV1, such as LMCACHE_MAX_LOCAL_CPU_SIZE; a variable overrides the file"},
    {"OCTAVO_API_KEY", "sets an API key, as --api-key does"},
    {"OMPI_COMM_WORLD_RANK, PMI_RANK ..", "rank of this process among the processes that mpirun has started"},
    {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
     "protocol of --otlp-traces-endpoint: grpc, http/protobuf or http/json (default: grpc for "
     "grpc://HOST:PORT, http/json for other URLs)"},
    {"OTEL_SERVICE_NAME", "name of the service in spans"},
    {"SAGEMAKER_ENABLE_STATEFUL_SESSIONS", "same as --sagemaker-sessions"},
    {"SAGEMAKER_SESSIONS_EXPIRATION", "same as --sagemaker-session-lifetime"},
    {"SLURM_NODEID ..", "index of this host among the hosts of a job"},
};

// A vertical bar would end the cell of a table.
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
  return fmt::format("no effect; only `{}`", values);
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
