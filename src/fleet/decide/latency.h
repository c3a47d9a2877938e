// Predicts an endpoint's latency by a linear model of its latest answers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fleet/decide/cycle.h"

namespace octavo::fleet {

class Parameters;
class Plugins;

// Ridge regression, one observation at a time: recursive least squares that forgets only in the direction of
// the observation (Kulhavy, Restricted exponential forgetting, Automatica 23, 1987).
class OnlineFit {
 public:
  static constexpr std::size_t kInputs = 6;
  using Inputs = std::array<double, kInputs>;  // of the order of 1; the first one is 1

  OnlineFit();
  void learn(const Inputs& x, double y);
  double predict(const Inputs& x) const;
  // Nothing is predicted before.
  bool ready() const { return learned_ >= 3 * static_cast<int>(kInputs); }

 private:
  Inputs weights_{};
  std::array<Inputs, kInputs> covariance_{};
  int learned_ = 0;
};

// State of an endpoint when a request arrives there.
struct LatencyInputs {
  OnlineFit::Inputs ttft{}, tpot{};
};

struct Latency {
  double ttft_ms = 0;
  double tpot_ms = 0;  // time per output token; 0 if unknown or not requested
};

// Limits in the request's headers minus the prediction; 0 without a prediction.
struct Headroom {
  double ttft_ms = 0, tpot_ms = 0;
  bool positive() const { return ttft_ms >= 0 && tpot_ms >= 0; }
};

class LatencyPredictor {
 public:
  virtual ~LatencyPredictor() = default;
  virtual LatencyInputs inputs(const Cycle& cycle, const Member& member) const = 0;
  // Nothing: too little is known of the endpoint.
  virtual std::optional<Headroom> headroom(const Cycle& cycle, const Member& member) const = 0;
  // Milliseconds to the first token. Nothing: too little is known of the endpoint.
  virtual std::optional<double> ttft_ms(const Cycle& cycle, const Member& member) const = 0;
  // Learns from a finished answer. Negative times: it had no first, or no second token.
  virtual void learn(EndpointId endpoint, const LatencyInputs& inputs, double ttft_ms, double tpot_ms) = 0;
};

// The plugin named by latencyPredictionInfoProducerName, with defaults if it is not configured.
const LatencyPredictor* find_predictor(Parameters& parameters, Plugins& plugins);

}  // namespace octavo::fleet
