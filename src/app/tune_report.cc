#include "app/tune_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json/serialize.hpp>

namespace octavo {
namespace {

std::string name_of(const GivenFlag& flag) { return flag.flag.substr(2); }

std::string trial_rows(const std::vector<TunedTrial>& trials) {
  std::string rows = "| setting | requests/s within the SLO | |\n|---|---|---|\n";
  for (const TunedTrial& trial : trials)
    rows += fmt::format("| {} | {} | {} |\n", flags_text(trial.flags),
                        trial.rate > 0 ? fmt::format("{:.2f}", trial.rate) : "", trial.reason);
  return rows;
}

std::string round_rows(const std::vector<LoadRound>& rounds) {
  std::string rows =
      "| requests/s | good | output tokens/s | TTFT p50, p99 ms | TPOT p50, p99 ms "
      "|\n|---|---|---|---|---|\n";
  for (const LoadRound& r : rounds)
    rows += fmt::format("| {:.2f} | {:.1f} % | {:.1f} | {:.1f}, {:.1f} | {:.1f}, {:.1f} |\n", r.rate,
                        r.good_share * 100, r.figure("output_throughput"), r.figure("p50_ttft_ms"),
                        r.figure("p99_ttft_ms"), r.figure("p50_tpot_ms"), r.figure("p99_tpot_ms"));
  return rows;
}

}  // namespace

std::string flags_text(const std::vector<GivenFlag>& flags) {
  std::vector<std::string> parts;
  for (const GivenFlag& flag : flags)
    if (!flag.value.empty()) parts.push_back(name_of(flag) + " " + flag.value);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string tuned_config(const TuneResult& result) {
  std::string text =
      fmt::format("# octavo serve --config FILE: {:.2f} requests/s with {:g} % of them within {}\n",
                  result.best.rate, result.share * 100, fmt::join(result.slo, " "));
  const auto add = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{}: {}\n", name, boost::json::serialize(boost::json::value(value)));
  };
  if (!result.model.empty()) add("model", result.model);
  // Leaves out --executor: the file is for a real engine, even if a simulated one was tuned.
  for (const auto* flags : {&result.given, &result.best.flags})
    for (const GivenFlag& flag : *flags)
      if (!flag.value.empty() && name_of(flag) != "executor") add(name_of(flag), flag.value);
  return text;
}

std::string tune_report(const TuneResult& result) {
  std::string text =
      fmt::format("# {}\n\n{:.2f} requests/s with {:g} % of them within {}: {}\n\n",
                  result.model.empty() ? "demo" : result.model, result.best.rate, result.share * 100,
                  fmt::join(result.slo, " "), flags_text(result.best.flags));
  if (!result.finals.empty())
    text += "## Tuned setting and best setting of the grid (median request rates, measured in turns)\n\n" +
            trial_rows(result.finals) + "\n";
  text += "## The best setting at its rate\n\n" + round_rows(result.confirmed);
  text += "\n## Throughput and latency of the best setting\n\n" + round_rows(result.curve);
  text += "\n## Search\n\n" + trial_rows(result.trials);
  if (!result.grid.empty()) text += "\n## Grid\n\n" + trial_rows(result.grid);
  return text;
}

}  // namespace octavo
