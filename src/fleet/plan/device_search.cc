#include "fleet/plan/device_search.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>
#include <limits>
#include <utility>

#include "fleet/plan/plan_report.h"
#include "fleet/plan/pool_sizing.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

double number(const Trial& trial, const char* name) { return trial.figures.at(name).to_number<double>(); }

class Search {
 public:
  Search(const Trace& trace, const Slo& slo, const SearchRules& rules, const SearchProgress& progress)
      : trace_(trace), slo_(slo), rules_(rules), progress_(progress) {}

  Result<> offer(const ReplicaKind& kind, bool pools) {
    Offer offer{.device = kind.device,
                .devices = kind.devices,
                .max_num_seqs = kind.max_num_seqs,
                .measured = kind.measured,
                .pools = pools};
    if (!kind.options) {
      offer.why = kind.options.error().message;
    } else {
      TRY_VOID(size(kind, offer));
    }
    found_.offers.push_back(std::move(offer));
    return {};
  }

  Result<DeviceSearch> result() && {
    if (!std::isfinite(cheapest_))
      return invalid("slo", "cannot be met with up to {} replicas of any device; last device tried: {}",
                     rules_.replicas_max, found_.offers.empty() ? "none" : found_.offers.back().why);
    found_.best = static_cast<std::size_t>(
        std::ranges::min_element(found_.offers, {},
                                 [](const Offer& offer) {
                                   return offer.why.empty() ? offer.cost_per_million_tokens
                                                            : std::numeric_limits<double>::infinity();
                                 }) -
        found_.offers.begin());
    return std::move(found_);
  }

 private:
  Result<> size(const ReplicaKind& kind, Offer& offer) {
    const double replica_price = kind.devices * kind.price;
    // largest fleet of this kind that costs less than the cheapest fleet so far
    const double affordable = std::ceil(cheapest_ / replica_price) - 1;
    const int most = static_cast<int>(std::min<double>(rules_.replicas_max, affordable));
    offer.why =
        most < rules_.replicas_max
            ? fmt::format("more than {} replicas cost more than the cheapest fleet", std::max(most, 0))
            : fmt::format("{} replicas do not meet the SLO", most);
    const std::string name = fmt::format("{} x{}, batch {}{}", kind.device, kind.devices, kind.max_num_seqs,
                                         offer.pools ? ", pools" : "");
    const auto show = [&](int, std::size_t done, std::size_t all) { progress_(name, done, all); };
    if (most < 1) return {};
    if (offer.pools) {
      TRY(auto sizing, size_pools(*kind.options, trace_, slo_, most, show));
      if (sizing) settle(replica_price, sizing->prefill, sizing->decode, std::move(sizing->trial), offer);
      return {};
    }
    SimulationOptions options = *kind.options;
    options.prefill.replicas = 0;
    Trial last;
    TRY(const int replicas, smallest_that(1, most, [&](int tried) -> Result<bool> {
          options.replicas = tried;
          TRY(Trial trial, try_fleet(options, trace_, slo_, show));
          const bool meets = trial.meets_slo;
          if (meets) last = std::move(trial);  // the last trial that meets the SLO has the smallest fleet
          return meets;
        }));
    if (replicas <= most) settle(replica_price, 0, replicas, std::move(last), offer);
    return {};
  }

  void settle(double replica_price, int prefill, int decode, Trial trial, Offer& offer) {
    offer.why.clear();
    offer.prefill_replicas = prefill;
    offer.replicas = decode;
    offer.price_per_hour = replica_price * (prefill + decode);
    offer.trial = std::move(trial);
    const double tokens =
        number(offer.trial, "total_input_tokens") + number(offer.trial, "total_output_tokens");
    offer.cost_per_million_tokens =
        tokens > 0 ? replica_price * number(offer.trial, "replica_hours") / tokens * 1e6 : 0;
    cheapest_ = std::min(cheapest_, offer.price_per_hour);
  }

  const Trace& trace_;
  const Slo& slo_;
  const SearchRules& rules_;
  const SearchProgress& progress_;
  double cheapest_ = std::numeric_limits<double>::infinity();
  DeviceSearch found_;
};

const char* timing_name(const Offer& offer) { return offer.measured ? "measured" : "roofline"; }

std::string row(const Offer& offer) {
  std::string text = fmt::format("{:>16}{:>9}{:>7}{:>10}", offer.device, offer.devices, offer.max_num_seqs,
                                 timing_name(offer));
  if (!offer.why.empty()) return text + fmt::format("  {}{}\n", offer.pools ? "pools: " : "", offer.why);
  const std::string replicas = offer.pools ? fmt::format("{} + {}", offer.prefill_replicas, offer.replicas)
                                           : std::to_string(offer.replicas);
  return text + fmt::format("{:>12}{:>9.2f} %{:>13.1f}{:>13.1f}{:>11.2f}{:>14.3f}\n", replicas,
                            offer.trial.attained * 100, number(offer.trial, "p99_ttft_ms"),
                            number(offer.trial, "p99_tpot_ms"), offer.price_per_hour,
                            offer.cost_per_million_tokens);
}

json::object offer_json(const Offer& offer) {
  json::object out{{"device", offer.device},
                   {"tensor_parallel_size", offer.devices},
                   {"max_num_seqs", offer.max_num_seqs},
                   {"timing", timing_name(offer)},
                   {"pools", offer.pools}};
  if (!offer.why.empty()) {
    out["reason"] = offer.why;
    return out;
  }
  out["replicas"] = offer.replicas;
  out["prefill_replicas"] = offer.prefill_replicas;
  out["price_per_hour"] = offer.price_per_hour;
  out["cost_per_million_tokens"] = offer.cost_per_million_tokens;
  // Load per replica of each pool, for `octavo plan live --tokens-per-second`.
  const double seconds = number(offer.trial, "duration");
  const double input = number(offer.trial, "total_input_tokens"),
               output = number(offer.trial, "total_output_tokens");
  if (seconds > 0 && offer.pools) {
    out["prefill_tokens_per_second"] = input / seconds / offer.prefill_replicas;
    out["decode_tokens_per_second"] = output / seconds / offer.replicas;
  } else if (seconds > 0) {
    out["tokens_per_second"] = (input + output) / seconds / offer.replicas;
  }
  out["figures"] = offer.trial.figures;
  return out;
}

}  // namespace

Result<DeviceSearch> search_devices(const std::vector<ReplicaKind>& kinds, const Trace& trace, const Slo& slo,
                                    const SearchRules& rules, const SearchProgress& progress) {
  Search search(trace, slo, rules, progress);
  for (const ReplicaKind& kind : kinds) {
    TRY_VOID(search.offer(kind, false));
    if (rules.pools && kind.options) TRY_VOID(search.offer(kind, true));
  }
  return std::move(search).result();
}

std::string device_search_text(const DeviceSearch& search, const Slo& slo) {
  std::string text = fmt::format("{:>16}{:>9}{:>7}{:>10}{:>12}{:>11}{:>13}{:>13}{:>11}{:>14}\n", "device",
                                 "devices", "batch", "timing", "replicas", "within SLO", "p99 TTFT ms",
                                 "p99 TPOT ms", "price/h", "per M tokens");
  for (const Offer& offer : search.offers) text += row(offer);
  const Offer& best = search.offers[search.best];
  return text +
         fmt::format(
             "\nCheapest for {:g} % of the requests: {} with {} each, batch {}{}: {:.3f} per million "
             "tokens.\n",
             slo.share * 100,
             best.pools
                 ? fmt::format("{} prefill and {} decode replicas", best.prefill_replicas, best.replicas)
                 : fmt::format("{} {}", best.replicas, best.replicas == 1 ? "replica" : "replicas"),
             fmt::format("{} {}", best.devices, best.device), best.max_num_seqs,
             best.pools ? ", separate pools" : "", best.cost_per_million_tokens);
}

json::object device_search_json(const DeviceSearch& search, const Slo& slo) {
  json::array offers;
  for (const Offer& offer : search.offers) offers.push_back(offer_json(offer));
  return {{"slo", slo_json(slo)}, {"best", search.best}, {"offers", std::move(offers)}};
}

}  // namespace octavo::fleet
