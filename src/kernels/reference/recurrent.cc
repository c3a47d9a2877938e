// Operators of recurrent layers. States are rounded to f32 after each token, so that results do not depend
// on how a prompt is divided into chunks.
#include <cmath>

#include "kernels/host_device.h"
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

namespace octavo::reference {
namespace {

// Calls body(slot, t) for every token of every sequence, in order. Sets the state to zero at position 0,
// and copies the state after each token for which a copy is requested.
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
      const std::int32_t copy = plan.copies ? plan.copies.as<std::int32_t>()[t] : -1;
      CHECK(copy < state.size(0), "state copy {} of {}", copy, state.size(0));
      if (copy >= 0) std::copy_n(state.row<float>(slot), floats, state.row<float>(copy));
    }
}

double step_of(const TimeStep& rule, const View& dt, std::int64_t t, std::int64_t i) {
  const double step = std::log1p(std::exp(at(dt, {t, i}) * rule.scale + at(rule.bias, {i})));
  return std::min<double>(std::max<double>(step, rule.least), rule.most);
}

}  // namespace

namespace {

// The form with ConvArgs::ahead, which has no state.
void convolve_complete(const ConvArgs& args) {
  const std::int64_t inputs = args.x.size(1), width = args.weight.size(1);
  const auto* starts = args.plan.starts.as<std::int32_t>();
  for (std::int64_t s = 0; s < args.plan.slots.size(0); ++s)
    for (std::int64_t t = starts[s]; t < starts[s + 1]; ++t)
      for (std::int64_t c = 0; c < args.y.size(1); ++c) {
        double sum = args.bias ? at(args.bias, {c}) : 0;
        for (std::int64_t j = 0; j < width; ++j) {
          const std::int64_t from = t + args.ahead - width + 1 + j, i = c % inputs;
          if (from < starts[s] || from >= starts[s + 1]) continue;
          sum += at(args.weight, {c, j}) * at(args.x, {from, i}) *
                 (args.x_gate ? at(args.x_gate, {from, i}) : 1);
        }
        if (args.silu) sum = activation(Activation::silu, sum);
        put(args.y, {t, c}, sum * (args.y_gate ? at(args.y_gate, {t, c}) : 1));
      }
}

}  // namespace

void causal_conv(Stream&, const ConvArgs& args) {
  if (args.ahead > 0) return convolve_complete(args);
  const std::int64_t inputs = args.x.size(1), channels = args.y.size(1), width = args.weight.size(1);
  for_tokens(args.plan, args.state, [&](std::int64_t slot, std::int64_t t) {
    for (std::int64_t i = 0; i < inputs; ++i) {
      const double x = at(args.x, {t, i}) * (args.x_gate ? at(args.x_gate, {t, i}) : 1);
      for (std::int64_t c = i; c < channels; c += inputs) {
        double sum = at(args.weight, {c, width - 1}) * x + (args.bias ? at(args.bias, {c}) : 0);
        for (std::int64_t j = 0; j < width - 1; ++j)
          sum += at(args.weight, {c, j}) * at(args.state, {slot, j, i});
        if (args.silu) sum = activation(Activation::silu, sum);
        put(args.y, {t, c}, sum * (args.y_gate ? at(args.y_gate, {t, c}) : 1));
      }
      for (std::int64_t j = 0; j < width - 2; ++j)
        put(args.state, {slot, j, i}, at(args.state, {slot, j + 1, i}));
      put(args.state, {slot, width - 2, i}, x);
    }
  });
}

void gated_delta(Stream&, const GatedDeltaArgs& args) {
  const std::int64_t heads = args.state.size(1), key_dim = args.state.size(2), value_dim = args.state.size(3);
  const std::int64_t keys_begin = args.key_heads * key_dim, values_begin = 2 * keys_begin;
  // Returns the head of the queries or keys that begins at column `begin`, divided by its norm.
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
      const std::int64_t key_head = args.key_head_of(h);
      const std::vector<double> q = unit(t, key_head * key_dim);
      const std::vector<double> k = unit(t, keys_begin + key_head * key_dim);
      const double beta = args.beta_scale / (1 + std::exp(-at(args.ba, {t, h})));
      const auto decay = [&](std::int64_t i) {
        const std::int64_t rate = args.dt_bias.elements() == heads ? h : h * key_dim + i;
        const double a = at(args.ba, {t, heads + rate}) + at(args.dt_bias, {rate});
        const double factor = std::exp(at(args.a_log, {h}));
        if (args.least_log < 0) return std::exp(args.least_log / (1 + std::exp(-factor * a)));
        return std::exp(-factor * std::log1p(std::exp(a)));
      };
      for (std::int64_t j = 0; j < value_dim; ++j) {
        double held = 0;
        for (std::int64_t i = 0; i < key_dim; ++i)
          held += decay(i) * at(args.state, {slot, h, i, j}) * k[static_cast<std::size_t>(i)];
        const double change = beta * (at(args.qkv, {t, values_begin + h * value_dim + j}) - held);
        double out = 0;
        for (std::int64_t i = 0; i < key_dim; ++i) {
          const double sum =
              decay(i) * at(args.state, {slot, h, i, j}) + k[static_cast<std::size_t>(i)] * change;
          put(args.state, {slot, h, i, j}, sum);
          out += sum * q[static_cast<std::size_t>(i)] / std::sqrt(static_cast<double>(key_dim));
        }
        put(args.out, {t, h * value_dim + j}, out);
      }
    }
  });
}

void scan(Stream&, const ScanArgs& args) {
  const std::int64_t heads = args.state.size(1), state_dim = args.state.size(2),
                     head_dim = args.state.size(3);
  for_tokens(args.plan, args.state, [&](std::int64_t slot, std::int64_t t) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t b_begin = heads * head_dim + h * args.groups / heads * state_dim;
      const std::int64_t c_begin = b_begin + args.groups * state_dim;
      const double step = args.dt ? step_of(args.time_step, args.dt, t, h) : 1;
      const double decay = std::exp(-std::exp(at(args.a_log, {h})) * step);
      for (std::int64_t j = 0; j < head_dim; ++j) {
        const double x = at(args.xbc, {t, h * head_dim + j});
        double out = at(args.d, {h}) * x;
        for (std::int64_t i = 0; i < state_dim; ++i) {
          const double sum =
              decay * at(args.state, {slot, h, i, j}) + at(args.xbc, {t, b_begin + i}) * step * x;
          put(args.state, {slot, h, i, j}, sum);
          out += sum * at(args.xbc, {t, c_begin + i});
        }
        put(args.out, {t, h * head_dim + j}, out);
      }
    }
  });
}

void channel_scan(Stream&, const ChannelScanArgs& args) {
  const std::int64_t state_dim = args.state.size(1), channels = args.state.size(2);
  for_tokens(args.plan, args.state, [&](std::int64_t slot, std::int64_t t) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const double step = step_of(args.time_step, args.dt, t, c), x = at(args.x, {t, c});
      double out = at(args.d, {c}) * x;
      for (std::int64_t i = 0; i < state_dim; ++i) {
        const double decay = std::exp(-std::exp(at(args.a_log, {c, i})) * step);
        const double sum = decay * at(args.state, {slot, i, c}) + at(args.bc, {t, i}) * step * x;
        put(args.state, {slot, i, c}, sum);
        out += sum * at(args.bc, {t, state_dim + i});
      }
      put(args.out, {t, c}, out);
    }
  });
}

void wkv(Stream&, const WkvArgs& args) {
  const std::int64_t heads = args.state.size(1), dim = args.state.size(2);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  for_tokens(args.plan, args.state, [&](std::int64_t slot, std::int64_t t) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t begin = h * dim;
      const auto count = static_cast<std::size_t>(dim);
      std::vector<double> r(count), k(count), unit(count), rate(count), decay(count), v(count), out(count);
      double squares = args.eps, bonus = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t at_i = begin + static_cast<std::int64_t>(i);
        r[i] = at(args.r, {t, at_i});
        rate[i] = sigmoid(at(args.rate, {t, at_i}));
        decay[i] = std::exp(-std::exp(-0.5) * sigmoid(at(args.decay, {t, at_i})));
        v[i] = at(args.v, {t, at_i});
        if (args.mix) v[i] += sigmoid(at(args.mix, {t, at_i})) * (at(args.first, {t, at_i}) - v[i]);
        unit[i] = at(args.k, {t, at_i}) * at(args.k_k, {at_i});
        squares += unit[i] * unit[i];
        k[i] = at(args.k, {t, at_i}) * (1 + (rate[i] - 1) * at(args.k_a, {at_i}));
        bonus += r[i] * k[i] * at(args.r_k, {at_i});
      }
      for (double& x : unit) x /= std::sqrt(squares);
      double mean = 0, variance = 0;
      for (std::int64_t j = 0; j < dim; ++j) {
        const auto column = static_cast<std::size_t>(j);
        double held = 0;
        for (std::int64_t i = 0; i < dim; ++i)
          held += unit[static_cast<std::size_t>(i)] * at(args.state, {slot, h, i, j});
        for (std::size_t i = 0; i < count; ++i) {
          const auto row = static_cast<std::int64_t>(i);
          const double sum =
              decay[i] * at(args.state, {slot, h, row, j}) - rate[i] * unit[i] * held + k[i] * v[column];
          put(args.state, {slot, h, row, j}, sum);
          out[column] += sum * r[i];
        }
        mean += out[column] / static_cast<double>(dim);
      }
      for (const double x : out) variance += (x - mean) * (x - mean) / static_cast<double>(dim);
      for (std::int64_t j = 0; j < dim; ++j) {
        const double normed = (out[static_cast<std::size_t>(j)] - mean) /
                                  std::sqrt(variance + args.norm.eps) * at(args.norm.weight, {begin + j}) +
                              at(args.norm.bias, {begin + j});
        put(args.out, {t, begin + j},
            (normed + bonus * v[static_cast<std::size_t>(j)]) * at(args.gate, {t, begin + j}));
      }
    }
  });
}

}  // namespace octavo::reference
