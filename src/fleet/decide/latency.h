// How long an endpoint will take, by what its answers took before: a line through the latest of them.
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

// Ridge regression, one observation after the other: recursive least squares that forgets in the direction of
// what it observes, and of nothing else (Kulhavy, Restricted exponential forgetting, Automatica 23, 1987).
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

// What a request finds where it is sent to.
struct LatencyInputs {
  OnlineFit::Inputs ttft{}, tpot{};
};

struct Latency {
  double ttft_ms = 0;
  double tpot_ms = 0;  // from a token to the next; 0: nothing of that is known, or asked for
};

// What the request's headers allow, less what is predicted; 0 of what is not predicted.
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
  // An answer is at its end; negative: it had no token, or no second one.
  virtual void learn(EndpointId endpoint, const LatencyInputs& inputs, double ttft_ms, double tpot_ms) = 0;
};

// The plugin named by latencyPredictionInfoProducerName, made with its defaults where nobody has configured
// it.
const LatencyPredictor* find_predictor(Parameters& parameters, Plugins& plugins);

}  // namespace octavo::fleet
