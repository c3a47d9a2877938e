// Layers with a state in place of a cache. States are f32 between tokens, wherever a prompt is cut.
#include <cmath>

#include "kernels/host_device.h"
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

namespace octavo::reference {
namespace {

// Calls body(slot, t) for every token of every sequence in order, with its state set to zeros at position 0.
template <class Body>
void for_tokens(const StatePlan& plan, const View& state, Body&& body) {
  check_indices("state", plan.slots, state.size(0));
  std::int64_t floats = 1;
  for (int axis = 1; axis < state.rank; ++axis) floats *= state.size(axis);
  const auto* starts = plan.starts.as<std::int32_t>();
  for (std::int64_t s = 0; s < plan.slots.size(0); ++s)
    for (std::int64_t t = starts[s]; t < starts[s + 1]; ++t) {
      const std::int64_t slot = plan.slots.as<std::int32_t>()[s];
      if (plan.positions.as<std::int32_t>()[t] == 0) std::fill_n(state.row<float>(slot), floats, 0.0F);
      body(slot, t);
    }
}

}  // namespace

void causal_conv(Stream&, const ConvArgs& args) {
  const std::int64_t channels = args.y.size(1), width = args.weight.size(1);
  for_tokens(args.plan, args.state, [&](std::int64_t slot, std::int64_t t) {
    for (std::int64_t c = 0; c < channels; ++c) {
      double sum = at(args.weight, {c, width - 1}) * at(args.x, {t, c});
      for (std::int64_t j = 0; j < width - 1; ++j)
        sum += at(args.weight, {c, j}) * at(args.state, {slot, j, c});
      for (std::int64_t j = 0; j < width - 2; ++j)
        put(args.state, {slot, j, c}, at(args.state, {slot, j + 1, c}));
      put(args.state, {slot, width - 2, c}, at(args.x, {t, c}));
      put(args.y, {t, c}, activation(Activation::silu, sum));
    }
  });
}

void gated_delta(Stream&, const GatedDeltaArgs& args) {
  const std::int64_t heads = args.state.size(1), key_dim = args.state.size(2), value_dim = args.state.size(3);
  const std::int64_t keys_begin = args.key_heads * key_dim, values_begin = 2 * keys_begin;
  // Head `head` of the queries or keys, divided by its length.
  const auto unit = [&](std::int64_t t, std::int64_t begin) {
    std::vector<double> x(static_cast<std::size_t>(key_dim));
    double squares = 1e-6;
    for (std::int64_t i = 0; i < key_dim; ++i) {
      x[static_cast<std::size_t>(i)] = at(args.qkv, {t, begin + i});
      squares += x[static_cast<std::size_t>(i)] * x[static_cast<std::size_t>(i)];
    }
    for (double& value : x) value /= std::sqrt(squares);
    return x;
  };
  for_tokens(args.plan, args.state, [&](std::int64_t slot, std::int64_t t) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t key_head = h * args.key_heads / heads;
      const std::vector<double> q = unit(t, key_head * key_dim);
      const std::vector<double> k = unit(t, keys_begin + key_head * key_dim);
      const double beta = 1 / (1 + std::exp(-at(args.ba, {t, h})));
      const double dt = std::log1p(std::exp(at(args.ba, {t, heads + h}) + at(args.dt_bias, {h})));
      const double decay = std::exp(-std::exp(at(args.a_log, {h})) * dt);
      for (std::int64_t j = 0; j < value_dim; ++j) {
        double held = 0;
        for (std::int64_t i = 0; i < key_dim; ++i)
          held += decay * at(args.state, {slot, h, i, j}) * k[static_cast<std::size_t>(i)];
        const double change = beta * (at(args.qkv, {t, values_begin + h * value_dim + j}) - held);
        double out = 0;
        for (std::int64_t i = 0; i < key_dim; ++i) {
          const double sum =
              decay * at(args.state, {slot, h, i, j}) + k[static_cast<std::size_t>(i)] * change;
          put(args.state, {slot, h, i, j}, sum);
          out += sum * q[static_cast<std::size_t>(i)] / std::sqrt(static_cast<double>(key_dim));
        }
        put(args.out, {t, h * value_dim + j}, out);
      }
    }
  });
}

}  // namespace octavo::reference
