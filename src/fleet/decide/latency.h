// Predicts the latency of an endpoint with a linear model that learns from its recent answers.
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

// Ridge regression that learns from one observation at a time. It is recursive least squares with
// restricted forgetting, which forgets only in the direction of the observation (Kulhavy, Restricted
// exponential forgetting, Automatica 23, 1987).
class OnlineFit {
 public:
  static constexpr std::size_t kInputs = 6;
  using Inputs = std::array<double, kInputs>;  // each about 1 or smaller; x[0] is 1

  OnlineFit();
  void learn(const Inputs& x, double y);
  double predict(const Inputs& x) const;
  bool ready() const { return learned_ >= 3 * static_cast<int>(kInputs); }

 private:
  Inputs weights_{};
  std::array<Inputs, kInputs> covariance_{};
  int learned_ = 0;
};

// Inputs of the two models, taken when the request arrives.
struct LatencyInputs {
  OnlineFit::Inputs ttft{}, tpot{};
};

struct Latency {
  double ttft_ms = 0;
  double tpot_ms = 0;  // time per output token; 0: unknown or not requested
};

// The request's latency limits minus the predicted latencies. 0 if there is no prediction.
struct Headroom {
  double ttft_ms = 0, tpot_ms = 0;
  bool positive() const { return ttft_ms >= 0 && tpot_ms >= 0; }
};

class LatencyPredictor {
 public:
  virtual ~LatencyPredictor() = default;
  virtual LatencyInputs inputs(const Cycle& cycle, const Member& member) const = 0;
  // Returns nullopt if the predictor has too few observations of the endpoint.
  virtual std::optional<Headroom> headroom(const Cycle& cycle, const Member& member) const = 0;
  // Returns nullopt if the predictor has too few observations of the endpoint.
  virtual std::optional<double> ttft_ms(const Cycle& cycle, const Member& member) const = 0;
  // Learns from a finished response. `ttft_ms` is negative if no token arrived, `tpot_ms` if fewer than two
  // tokens arrived.
  virtual void learn(EndpointId endpoint, const LatencyInputs& inputs, double ttft_ms, double tpot_ms) = 0;
};

// Returns the plugin that the parameter latencyPredictionInfoProducerName names. If the plugin is not
// configured, adds it with default parameters.
const LatencyPredictor* find_predictor(Parameters& parameters, Plugins& plugins);

}  // namespace octavo::fleet
