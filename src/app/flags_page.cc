#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/serve_flags.h"
#include "app/vllm_flags.h"

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
Environment: `OCTAVO_API_KEY`, `VLLM_API_KEY`, `OTEL_SERVICE_NAME`, `VLLM_LOGGING_LEVEL`, `VLLM_LOG_STATS_INTERVAL`, `VLLM_SERVER_DEV_MODE`,
`VLLM_ALLOW_RUNTIME_LORA_UPDATING`, `VLLM_LORA_RESOLVER_CACHE_DIR`, `VLLM_PLUGINS`, `VLLM_NIXL_SIDE_CHANNEL_HOST`,
`VLLM_NIXL_SIDE_CHANNEL_PORT`, AWS's variables for an S3 tier, the variables of `mpirun`, and those of
[models by name](models.md#models-by-name).

)";

// Escapes vertical bars, which would end a cell.
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

}  // namespace

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
