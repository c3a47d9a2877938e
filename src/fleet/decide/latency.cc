#include "fleet/decide/latency.h"

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugins.h"

namespace octavo::fleet {
namespace {

// prior variance of the weights, relative to the variance of the observations
constexpr double kPriorVariance = 1e4;
// forgetting factor; about the last 200 answers count
constexpr double kForgetting = 0.97;

}  // namespace

OnlineFit::OnlineFit() {
  for (std::size_t i = 0; i < kInputs; ++i) covariance_[i][i] = kPriorVariance;
}

void OnlineFit::learn(const Inputs& x, double y) {
  Inputs along{};
  double variance = 0;
  for (std::size_t i = 0; i < kInputs; ++i) {
    for (std::size_t j = 0; j < kInputs; ++j) along[i] += covariance_[i][j] * x[j];
    variance += along[i] * x[i];
  }
  const double error = y - predict(x);
  for (std::size_t i = 0; i < kInputs; ++i) weights_[i] += along[i] / (1 + variance) * error;
  // The covariance shrinks if `variance` is above (1 - kForgetting) / kForgetting, and grows if it is
  // below.
  const double share = (kForgetting - (1 - kForgetting) / variance) / (kForgetting * (1 + variance));
  for (std::size_t i = 0; i < kInputs; ++i)
    for (std::size_t j = 0; j < kInputs; ++j) covariance_[i][j] -= share * along[i] * along[j];
  ++learned_;
}

double OnlineFit::predict(const Inputs& x) const {
  double y = 0;
  for (std::size_t i = 0; i < kInputs; ++i) y += weights_[i] * x[i];
  return y;
}

const LatencyPredictor* find_predictor(Parameters& parameters, Plugins& plugins) {
  constexpr std::string_view kField = "latencyPredictionInfoProducerName";
  std::string name = "predicted-latency-producer";
  parameters.read(kField, name);
  plugins.producer(name, parameters, kField);
  const auto* predictor = dynamic_cast<const LatencyPredictor*>(plugins.find(name));
  if (!predictor) parameters.fail(kField, "must name a plugin that predicts latencies");
  return predictor;
}

}  // namespace octavo::fleet
