#include "fleet/plan/capacity.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace octavo::fleet {
namespace {

constexpr std::size_t kWindowsMax = 100'000;
// empty windows after each window, so that the queue of a window does not affect the next window
constexpr std::int64_t kApart = 4;

std::size_t window_of(const Trace& trace, const TraceRequest& request, std::int64_t window_us) {
  return static_cast<std::size_t>((request.arrival_us - trace.requests.front().arrival_us) / window_us);
}

Trace set_apart(Trace trace, std::int64_t window_us) {
  for (TraceRequest& request : trace.requests)
    request.arrival_us +=
        static_cast<std::int64_t>(window_of(trace, request, window_us)) * kApart * window_us;
  return trace;
}

struct Window {
  double load = 0;
  std::int64_t requests = 0;
  std::int64_t met = 0;
};

double highest_load_served(std::vector<Window> windows, double share) {
  std::ranges::sort(windows, {}, &Window::load);
  double highest = 0;
  std::size_t first = 0;
  std::int64_t requests = 0, met = 0;
  for (const Window& window : windows) {
    requests += window.requests;
    met += window.met;
    for (; windows[first].load <= window.load / 2 && &windows[first] != &window; ++first) {
      requests -= windows[first].requests;
      met -= windows[first].met;
    }
    if (static_cast<double>(met) >= share * static_cast<double>(requests)) highest = window.load;
  }
  return highest;
}

}  // namespace

Result<std::vector<double>> window_loads(const Trace& trace, std::int64_t window_us) {
  if (trace.closed)
    return invalid("window",
                   "is not supported for traffic with `users`, because each user waits for an answer, so "
                   "that the load depends on the fleet");
  const std::size_t last = window_of(trace, trace.requests.back(), window_us);
  if (last >= kWindowsMax)
    return invalid("window", "is too short: the trace has {} windows of {} s, but at most {} are allowed",
                   last + 1, window_us / 1'000'000, kWindowsMax);
  std::vector<double> loads(last + 1);
  for (const TraceRequest& request : trace.requests)
    loads[window_of(trace, request, window_us)] += request.input_tokens + request.output_tokens;
  for (double& load : loads) load /= static_cast<double>(window_us) * 1e-6;
  return loads;
}

CapacityTable::CapacityTable(std::vector<Capacity> rows) : rows_(std::move(rows)) {
  CHECK(!rows_.empty() && rows_.back().load > 0);
  for (std::size_t i = 1; i < rows_.size(); ++i) rows_[i].load = std::max(rows_[i].load, rows_[i - 1].load);
}

int CapacityTable::replicas_for(double load) const {
  const auto whole = [](double replicas) {
    return std::max(1, static_cast<int>(std::ceil(replicas - 1e-9)));
  };
  const auto above = std::ranges::lower_bound(rows_, load, {}, &Capacity::load);
  if (above == rows_.end()) return whole(load / rows_.back().load * rows_.back().replicas);
  const Capacity below = above == rows_.begin() ? Capacity{} : above[-1];
  if (above->load <= below.load) return above->replicas;
  return whole(below.replicas +
               (load - below.load) / (above->load - below.load) * (above->replicas - below.replicas));
}

Result<CapacityTable> measure_capacity(SimulationOptions options, const Trace& trace, const Slo& slo,
                                       std::int64_t window_us, int enough, const TrialProgress& progress) {
  TRY(const std::vector<double> loads, window_loads(trace, window_us));
  const Trace apart = set_apart(trace, window_us);
  std::vector<Capacity> rows;
  for (int replicas = 1; replicas < enough; replicas += 1 + replicas / 4) {
    options.replicas = replicas;
    TRY(const SimulationResult result,
        simulate(options, apart, [&](std::size_t done, std::size_t all) { progress(replicas, done, all); }));
    std::vector<Window> windows;
    for (const double load : loads) windows.push_back({.load = load});
    for (std::size_t i = 0; i < trace.requests.size(); ++i) {
      Window& window = windows[window_of(trace, trace.requests[i], window_us)];
      ++window.requests;
      window.met += met_by(slo, result.answers[i]);
    }
    rows.push_back({replicas, highest_load_served(std::move(windows), slo.share)});
  }
  rows.push_back({enough, std::ranges::max(loads)});
  return CapacityTable(std::move(rows));
}

}  // namespace octavo::fleet
