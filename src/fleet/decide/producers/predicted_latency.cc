// predicted-latency-producer: predicts the time to the first token (TTFT) and the time per output token
// (TPOT) of each endpoint. Each endpoint has two linear models, which learn from its answers. llm-d runs
// its model in a separate process.
#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "fleet/decide/latency.h"
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

struct Settings {
  // false: the time to the first token is the time to the end of the answer, and TPOT is not predicted
  bool streaming = false;
  double slo_factor = 1;  // the request's limit on TPOT is multiplied by this factor
  std::string role_label = {};
};

// Returns the latency limit in ms from the request header `name` or `old_name`. Returns 0 if the request has
// neither.
double allowed(const RouteRequest& request, std::string_view name, std::string_view old_name) {
  const auto found = request.header(name) ? request.header(name) : request.header(old_name);
  const std::string_view text = found.value_or("");
  double ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  return error == std::errc() && end == text.data() + text.size() && ms > 0 ? ms : 0;
}

class PredictedLatencyProducer : public Producer, public LatencyPredictor {
 public:
  explicit PredictedLatencyProducer(Settings settings) : settings_(std::move(settings)) {}

  void produce(const Cycle&, Overlap&) override {}  // this producer only predicts latencies

  LatencyInputs inputs(const Cycle& cycle, const Member& member) const override {
    const EndpointState& state = member.state;
    const Load load = cycle.load(member);
    const auto prompt = static_cast<double>(cycle.request.tokens.size());
    const double fresh = prompt - static_cast<double>(cycle.cached_tokens(member.id));
    const double before = static_cast<double>(load.prefill_tokens);
    return {
        .ttft = {1, fresh / 1000, before / 1000, state.waiting / 10.0, load.requests / 10.0, state.kv_usage},
        .tpot = {1, load.requests / 10.0, state.running / 10.0,
                 static_cast<double>(load.context_tokens) / 10'000, prompt / 10'000, state.kv_usage}};
  }

  std::optional<Headroom> headroom(const Cycle& cycle, const Member& member) const override {
    if (member.id >= fits_.size() || !fits_[member.id].ttft.ready()) return std::nullopt;
    const Fits& fits = fits_[member.id];
    const LatencyInputs x = inputs(cycle, member);
    Headroom room{.ttft_ms = allowed(cycle.request, "x-llm-d-slo-ttft-ms", "x-slo-ttft-ms") -
                             std::max(0.0, fits.ttft.predict(x.ttft))};
    if (settings_.streaming && fits.tpot.ready() && !only_prefills(member))
      room.tpot_ms = allowed(cycle.request, "x-llm-d-slo-tpot-ms", "x-slo-tpot-ms") * settings_.slo_factor -
                     std::max(0.0, fits.tpot.predict(x.tpot));
    return room;
  }

  std::optional<double> ttft_ms(const Cycle& cycle, const Member& member) const override {
    if (member.id >= fits_.size() || !fits_[member.id].ttft.ready()) return std::nullopt;
    return std::max(0.0, fits_[member.id].ttft.predict(inputs(cycle, member).ttft));
  }

  void learn(EndpointId endpoint, const LatencyInputs& x, double ttft_ms, double tpot_ms) override {
    if (endpoint >= fits_.size()) fits_.resize(endpoint + std::size_t{1});
    if (ttft_ms >= 0) fits_[endpoint].ttft.learn(x.ttft, ttft_ms);
    if (tpot_ms >= 0) fits_[endpoint].tpot.learn(x.tpot, tpot_ms);
  }

  void forget(EndpointId endpoint) override {
    if (endpoint < fits_.size()) fits_[endpoint] = {};
  }

 private:
  struct Fits {
    OnlineFit ttft, tpot;
  };

  bool only_prefills(const Member& member) const {
    const auto role = member.endpoint->labels.find(settings_.role_label);
    return role != member.endpoint->labels.end() && role->second == "prefill";
  }

  const Settings settings_;
  std::vector<Fits> fits_;  // [EndpointId]
};

}  // namespace

std::unique_ptr<Plugin> make_predicted_latency_producer(Parameters& parameters, Plugins&) {
  Settings settings;
  parameters.read("streamingMode", settings.streaming);
  parameters.read("sloBufferFactor", settings.slo_factor, 0, 1e6);
  parameters.read("endpointRoleLabel", settings.role_label);
  // llm-d's parameters for sampling tokens and for keeping requests have no effect.
  double mean = 0;
  std::int64_t samples = 0;
  parameters.read("samplingMean", mean, 0, 1e9);
  parameters.read("maxDecodeTokenSamplesForPrediction", samples, 0, std::numeric_limits<std::int32_t>::max());
  parameters.get("contextTTL");
  std::string prefixes;  // has no effect, because the predictor uses all producers
  parameters.read("prefixMatchInfoProducerName", prefixes);
  return std::make_unique<PredictedLatencyProducer>(std::move(settings));
}

}  // namespace octavo::fleet
