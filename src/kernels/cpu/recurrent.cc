// Recurrent layers. The tokens of a sequence are processed in order. Each thread processes some of the
// channels or state columns.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"

namespace octavo::cpu {
namespace {

// Channels that are processed at a time; a multiple of the number of lanes of every instruction set.
constexpr std::int64_t kChannels = 256;
constexpr std::int64_t kColumns = 64;  // state columns in a call: 32 KiB with 128 keys
constexpr std::int64_t kScanned = 64;
constexpr float kMostDecay = 0.60653066F;  // exp(-1/2), as in WkvArgs

struct Tokens {
  std::int64_t slot, begin, end;
  bool begins;  // whether the sequence starts at position 0
};

Tokens tokens_of(const StatePlan& plan, std::int64_t sequence) {
  const auto* starts = plan.starts.as<std::int32_t>();
  const std::int64_t begin = starts[sequence], end = starts[sequence + 1];
  return {.slot = plan.slots.as<std::int32_t>()[sequence],
          .begin = begin,
          .end = end,
          .begins = begin < end && plan.positions.as<std::int32_t>()[begin] == 0};
}

// Returns the address for a copy of the state after token t, or null if no copy is requested.
float* copy_of(const StatePlan& plan, const View& states, std::int64_t t) {
  const std::int32_t slot = plan.copies ? plan.copies.as<std::int32_t>()[t] : -1;
  CHECK(slot < states.size(0), "state copy {} of {}", slot, states.size(0));
  return slot < 0 ? nullptr : states.row<float>(slot);
}

// Copies the state after token t, if a copy is requested: `rows` rows of `count` elements, `stride`
// elements apart. `state` is the first element in the sequence's slot.
void copy_state(const StatePlan& plan, const View& states, const Tokens& tokens, std::int64_t t, const float* state,
                std::int64_t rows, std::int64_t stride, std::int64_t count) {
  float* const copy = copy_of(plan, states, t);
  if (copy == nullptr) return;
  const std::int64_t first = state - states.row<float>(tokens.slot);
  for (std::int64_t row = 0; row < rows; ++row) std::copy_n(state + row * stride, count, copy + first + row * stride);
}

const std::byte* address(const View& view, std::int64_t row, std::int64_t column) {
  return static_cast<const std::byte*>(view.data) +
         (row * view.stride[0] + column) * static_cast<std::int64_t>(size_of(view.dtype));
}
std::byte* address_to(const View& view, std::int64_t row, std::int64_t column) {
  return const_cast<std::byte*>(address(view, row, column));
}

void convolve(const IsaKernels& kernels, const ConvArgs& args, const Tokens& tokens, std::int64_t,
              std::int64_t first, std::int64_t count) {
  const Format format = format_of(args.x.dtype);
  const std::int64_t width = args.weight.size(1), inputs = args.x.size(1);
  const std::int64_t padded = (count + 15) / 16 * 16;
  alignas(64) float weights[kMaxConvWidth][kChannels] = {}, latest[kMaxConvWidth][kChannels] = {};
  alignas(64) float bias[kChannels] = {}, gate[kChannels] = {};
  // Computes x *= gate[t].
  const auto multiply = [&](const View& gates, std::int64_t t, float* x, std::int64_t column) {
    if (!gates) return;
    alignas(64) float product[kChannels] = {};
    kernels.widen(address(gates, t, column), format, gate, count);
    kernels.add_scaled(x, gate, product, padded, 1, 0);
    std::copy_n(product, count, x);
  };
  std::int64_t at = 0;
  // Writes the last width - 1 inputs before token `at` to `state`.
  const auto put_latest = [&](float* state) {
    for (std::int64_t j = 0; j < width - 1; ++j)
      std::copy_n(latest[(at + 1 + j) % width], count, state + first + j * inputs);
  };
  const float* const state = args.state.row<float>(tokens.slot) + first;
  for (std::int64_t out = first; out < args.y.size(1); out += inputs) {
    if (args.bias) std::copy_n(args.bias.as<float>() + out, count, bias);
    for (std::int64_t c = 0; c < count; ++c)
      for (std::int64_t j = 0; j < width; ++j) weights[j][c] = args.weight.row<float>(out + c)[j];
    // latest[t % width] is the input of the channels at token t. Tokens are counted from the oldest token
    // in the state.
    for (std::int64_t j = 0; j < width - 1; ++j)
      if (tokens.begins)
        std::fill_n(latest[j], count, 0.0F);
      else
        std::copy_n(state + j * inputs, count, latest[j]);
    at = width - 1;
    const auto write = [&](std::int64_t t) {
      alignas(64) float sum[kChannels];
      std::copy_n(bias, padded, sum);
      for (std::int64_t j = 0; j < width; ++j)
        kernels.add_scaled(latest[(at + 1 + j) % width], weights[j], sum, padded, 1, 0);
      if (args.silu) kernels.activate(sum, nullptr, Format::f32, {Activation::silu, 1, 0}, sum, count);
      multiply(args.y_gate, t, sum, out);
      kernels.narrow(sum, nullptr, format, address_to(args.y, t, out), count);
    };
    for (std::int64_t t = tokens.begin; t < tokens.end + args.ahead; ++t) {
      if (t < tokens.end) {
        kernels.widen(address(args.x, t, first), format, latest[at % width], count);
        multiply(args.x_gate, t, latest[at % width], first);
      } else {
        std::fill_n(latest[at % width], count, 0.0F);
      }
      if (t - args.ahead >= tokens.begin) write(t - args.ahead);
      ++at;
      if (t >= tokens.end) continue;
      if (float* const copy = copy_of(args.plan, args.state, t)) put_latest(copy);
    }
  }
  if (args.ahead == 0) put_latest(args.state.row<float>(tokens.slot));
}

float softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }

float time_step(const TimeStep& rule, float dt, std::int64_t i) {
  return std::min(std::max(softplus(dt * rule.scale + rule.bias.as<float>()[i]), rule.least), rule.most);
}

// Computes out = x * factor / |x|.
void unit(const IsaKernels& kernels, const std::byte* x, Format format, std::int64_t n, float factor,
          float* out) {
  const auto count = static_cast<float>(n);
  const NormStats stats = kernels.norm_stats(x, format, n, NormKind::rms, 1e-6F / count);
  const float scale = stats.scale / std::sqrt(count) * factor;
  kernels.widen(x, format, out, n);
  for (std::int64_t i = 0; i < n; ++i) out[i] *= scale;
}

void run_head(const IsaKernels& kernels, const GatedDeltaArgs& args, const Tokens& tokens, std::int64_t head,
              std::int64_t column, std::int64_t count) {
  const Format format = format_of(args.qkv.dtype);
  const std::int64_t heads = args.state.size(1), key_dim = args.state.size(2), value_dim = args.state.size(3);
  const std::int64_t key_head = args.key_head_of(head), keys_begin = args.key_heads * key_dim;
  float* const state = args.state.row<float>(tokens.slot) + head * key_dim * value_dim + column;
  if (tokens.begins)
    for (std::int64_t i = 0; i < key_dim; ++i) std::fill_n(state + i * value_dim, count, 0.0F);
  const float factor = std::exp(args.a_log.as<float>()[head]);
  const auto decay = [&](float a) {
    if (args.least_log < 0) return std::exp(args.least_log / (1 + std::exp(-factor * a)));
    return std::exp(-factor * softplus(a));
  };
  const bool by_row = args.dt_bias.elements() != heads;
  const float* const dt_bias = args.dt_bias.as<float>() + head * (by_row ? key_dim : 1);
  const float q_factor = 1 / std::sqrt(static_cast<float>(key_dim));
  const std::int64_t value = head * value_dim + column;
  alignas(64) float q[kMaxStateDim], k[kMaxStateDim], decays[kMaxStateDim], v[kColumns], out[kColumns];
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
    unit(kernels, address(args.qkv, t, key_head * key_dim), format, key_dim, q_factor, q);
    unit(kernels, address(args.qkv, t, keys_begin + key_head * key_dim), format, key_dim, 1, k);
    kernels.widen(address(args.qkv, t, 2 * keys_begin + value), format, v, count);
    const float beta = args.ba.row<float>(t)[head];
    const float* const a = args.ba.row<float>(t) + heads + head * (by_row ? key_dim : 1);
    for (std::int64_t i = 0; i < (by_row ? key_dim : 1); ++i) decays[i] = decay(a[i] + dt_bias[i]);
    kernels.delta({.state = state,
                   .stride = value_dim,
                   .keys = key_dim,
                   .columns = count,
                   .q = q,
                   .k = k,
                   .v = v,
                   .decay = decays[0],
                   .decays = by_row ? decays : nullptr,
                   .beta = args.beta_scale / (1 + std::exp(-beta)),
                   .corrects = true,
                   .out = out});
    copy_state(args.plan, args.state, tokens, t, state, key_dim, value_dim, count);
    kernels.narrow(out, nullptr, format, address_to(args.out, t, value), count);
  }
}

void scan_head(const IsaKernels& kernels, const ScanArgs& args, const Tokens& tokens, std::int64_t head,
               std::int64_t column, std::int64_t count) {
  const Format format = format_of(args.xbc.dtype);
  const std::int64_t heads = args.state.size(1), state_dim = args.state.size(2),
                     head_dim = args.state.size(3);
  const std::int64_t b_begin = heads * head_dim + head * args.groups / heads * state_dim;
  const std::int64_t c_begin = b_begin + args.groups * state_dim;
  const std::int64_t first = head * head_dim + column;
  float* const state = args.state.row<float>(tokens.slot) + head * state_dim * head_dim + column;
  if (tokens.begins)
    for (std::int64_t i = 0; i < state_dim; ++i) std::fill_n(state + i * head_dim, count, 0.0F);
  const float rate = -std::exp(args.a_log.as<float>()[head]), d = args.d.as<float>()[head];
  alignas(64) float b[kMaxStateDim], c[kMaxStateDim], x[kColumns], out[kColumns];
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
    kernels.widen(address(args.xbc, t, b_begin), format, b, state_dim);
    kernels.widen(address(args.xbc, t, c_begin), format, c, state_dim);
    kernels.widen(address(args.xbc, t, first), format, x, count);
    float step = 1;
    if (args.dt) {
      kernels.widen(address(args.dt, t, head), format, &step, 1);
      step = time_step(args.time_step, step, head);
    }
    kernels.delta({.state = state,
                   .stride = head_dim,
                   .keys = state_dim,
                   .columns = count,
                   .q = c,
                   .k = b,
                   .v = x,
                   .decay = std::exp(rate * step),
                   .beta = step,
                   .corrects = false,
                   .out = out});
    copy_state(args.plan, args.state, tokens, t, state, state_dim, head_dim, count);
    for (std::int64_t j = 0; j < count; ++j) out[j] += d * x[j];
    kernels.narrow(out, nullptr, format, address_to(args.out, t, first), count);
  }
}

void run_wkv_head(const IsaKernels& kernels, const WkvArgs& args, const Tokens& tokens, std::int64_t head,
                  std::int64_t, std::int64_t) {
  const Format format = format_of(args.out.dtype);
  const std::int64_t dim = args.state.size(2), first = head * dim;
  float* const state = args.state.row<float>(tokens.slot) + head * dim * dim;
  if (tokens.begins) std::fill_n(state, dim * dim, 0.0F);
  const auto of_head = [&](const View& vector) { return vector.as<float>() + first; };
  const float *k_k = of_head(args.k_k), *k_a = of_head(args.k_a), *r_k = of_head(args.r_k);
  const float *weight = of_head(args.norm.weight), *norm_bias = of_head(args.norm.bias);
  constexpr std::int64_t kMost = kMaxStateDim;
  alignas(64) float r[kMost], k[kMost], v[kMost], rate[kMost], gate[kMost], decays[kMost], unit_key[kMost],
      erased[kMost], mix[kMost], earlier[kMost], out[kMost];
  const auto sigmoid = [&](float* x) {
    kernels.activate(x, nullptr, Format::f32, {Activation::sigmoid, 1, 0}, x, dim);
  };
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
    const auto take = [&](const View& view, float* to) {
      kernels.widen(address(view, t, first), format_of(view.dtype), to, dim);
    };
    take(args.r, r);
    take(args.k, k);
    take(args.v, v);
    take(args.gate, gate);
    take(args.rate, rate);
    take(args.decay, decays);
    sigmoid(rate);
    sigmoid(decays);
    for (std::int64_t i = 0; i < dim; ++i) decays[i] = std::exp(-kMostDecay * decays[i]);
    if (args.mix) {
      take(args.mix, mix);
      take(args.first, earlier);
      sigmoid(mix);
      for (std::int64_t i = 0; i < dim; ++i) v[i] += mix[i] * (earlier[i] - v[i]);
    }
    float squares = args.eps, bonus = 0;
    for (std::int64_t i = 0; i < dim; ++i) {
      unit_key[i] = k[i] * k_k[i];
      squares += unit_key[i] * unit_key[i];
      k[i] *= 1 + (rate[i] - 1) * k_a[i];
      bonus += r[i] * k[i] * r_k[i];
    }
    const float scale = 1 / std::sqrt(squares);
    for (std::int64_t i = 0; i < dim; ++i) {
      unit_key[i] *= scale;
      erased[i] = rate[i] * unit_key[i];
    }
    kernels.wkv({.state = state,
                 .dim = dim,
                 .r = r,
                 .k = k,
                 .v = v,
                 .decays = decays,
                 .unit = unit_key,
                 .erased = erased,
                 .out = out});
    copy_state(args.plan, args.state, tokens, t, state, dim, dim, dim);
    const NormStats stats = kernels.norm_stats(out, Format::f32, dim, NormKind::layer, args.norm.eps);
    for (std::int64_t i = 0; i < dim; ++i)
      out[i] = ((out[i] - stats.mean) * stats.scale * weight[i] + norm_bias[i] + bonus * v[i]) * gate[i];
    kernels.narrow(out, nullptr, format, address_to(args.out, t, first), dim);
  }
}

void scan_channels(const IsaKernels& kernels, const ChannelScanArgs& args, const Tokens& tokens, std::int64_t,
                   std::int64_t first, std::int64_t count) {
  const Format format = format_of(args.x.dtype);
  const std::int64_t state_dim = args.state.size(1), channels = args.state.size(2);
  float* const state = args.state.row<float>(tokens.slot) + first;
  if (tokens.begins)
    for (std::int64_t i = 0; i < state_dim; ++i) std::fill_n(state + i * channels, count, 0.0F);
  alignas(64) float rates[kMaxStateDim * kScanned];
  for (std::int64_t channel = 0; channel < count; ++channel) {
    const float* a_log = args.a_log.row<float>(first + channel);
    for (std::int64_t i = 0; i < state_dim; ++i) rates[i * kScanned + channel] = -std::exp(a_log[i]);
  }
  alignas(64) float bc[2 * kMaxStateDim], x[kScanned], step[kScanned], out[kScanned];
  const float* d = args.d.as<float>() + first;
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
    kernels.widen(address(args.bc, t, 0), format, bc, 2 * state_dim);
    kernels.widen(address(args.x, t, first), format, x, count);
    kernels.widen(address(args.dt, t, first), format, step, count);
    for (std::int64_t i = 0; i < count; ++i) step[i] = time_step(args.time_step, step[i], first + i);
    kernels.channel_step({.state = state,
                          .stride = channels,
                          .numbers = state_dim,
                          .channels = count,
                          .rates = rates,
                          .rate_stride = kScanned,
                          .b = bc,
                          .c = bc + state_dim,
                          .x = x,
                          .step = step,
                          .out = out});
    copy_state(args.plan, args.state, tokens, t, state, state_dim, channels, count);
    for (std::int64_t i = 0; i < count; ++i) out[i] += d[i] * x[i];
    kernels.narrow(out, nullptr, format, address_to(args.out, t, first), count);
  }
}

// Calls run(kernels, args, tokens, part, column, count) on all threads, for every sequence with tokens,
// every one of the `parts` parts, and every range of at most `most` columns.
template <class Args, class Run>
void for_sequences(Stream& stream, const Args& args, std::int64_t parts, std::int64_t columns,
                   std::int64_t most, Run run) {
  check_indices("state", args.plan.slots, args.state.size(0));
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  for_pieces(pool_of(stream), args.plan.slots.size(0) * parts, columns, most,
             [&](std::int64_t row, std::int64_t column, std::int64_t count) {
               const Tokens tokens = tokens_of(args.plan, row / parts);
               if (tokens.begin < tokens.end) run(kernels, args, tokens, row % parts, column, count);
             });
}

}  // namespace

void causal_conv(Stream& stream, const ConvArgs& args) {
  for_sequences(stream, args, 1, args.x.size(1), kChannels, convolve);
}

void gated_delta(Stream& stream, const GatedDeltaArgs& args) {
  for_sequences(stream, args, args.state.size(1), args.state.size(3), kColumns, run_head);
}

void scan(Stream& stream, const ScanArgs& args) {
  for_sequences(stream, args, args.state.size(1), args.state.size(3), kColumns, scan_head);
}

void channel_scan(Stream& stream, const ChannelScanArgs& args) {
  for_sequences(stream, args, 1, args.state.size(2), kScanned, scan_channels);
}

void wkv(Stream& stream, const WkvArgs& args) {
  for_sequences(stream, args, args.state.size(1), 1, 1, run_wkv_head);
}

}  // namespace octavo::cpu
