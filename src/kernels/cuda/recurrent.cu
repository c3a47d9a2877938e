// Recurrent layers. The tokens of each sequence are processed in order.
#include "kernels/cuda/gpu.h"

namespace octavo::cuda {
namespace {

constexpr int kConvThreads = 128, kMostWidth = 8, kMostKeys = 256;

template <class T>
__device__ T& element(const Rows& rows, std::int64_t row, std::int64_t column) {
  return static_cast<T*>(rows.data)[element_at(row, rows.stride, column)];
}

__device__ float* state_of(const StateParams& p, std::int64_t sequence) {
  return p.data + element_at(p.slots[sequence], p.stride, 0);
}

// Returns the address to which the state after token t is copied, at the same offset in its slot as `state`;
// null: no copy.
__device__ float* copy_of(const StateParams& p, std::int64_t sequence, const float* state, std::int64_t t) {
  const std::int32_t slot = p.copies != nullptr ? p.copies[t] : -1;
  return slot < 0 ? nullptr : p.data + element_at(slot, p.stride, 0) + (state - state_of(p, sequence));
}

// Copies `count` elements of a state, `stride` elements apart, to the address that copy_of() returns.
__device__ void copy_state(const StateParams& p, std::int64_t sequence, const float* state, std::int64_t t,
                           std::int64_t count, std::int64_t stride) {
  if (float* copy = copy_of(p, sequence, state, t))
    for (std::int64_t i = 0; i < count; ++i) copy[i * stride] = state[i * stride];
}

// A thread processes one input, and all channels of this input one after the other.
template <class T>
__global__ void __launch_bounds__(kConvThreads) conv_kernel(ConvParams p) {
  wait_for_kernels();
  const std::int64_t sequence = block_x(), input = block_y() * kConvThreads + thread();
  const std::int64_t begin = p.state.starts[sequence], end = p.state.starts[sequence + 1];
  if (input >= p.inputs || begin == end) return;
  float* state = state_of(p.state, sequence) + input;
  const bool begins = p.state.positions[begin] == 0;
  float weight[kMostWidth], latest[kMostWidth];
  for (std::int64_t channel = input; channel < p.channels; channel += p.inputs) {
    for (int j = 0; j < p.width; ++j) weight[j] = element<float>(p.weight, channel, j);
    for (int j = 0; j + 1 < p.width; ++j) latest[j] = begins ? 0 : state[j * p.inputs];
    for (std::int64_t t = begin; t < end; ++t) {
      latest[p.width - 1] = to_float(element<T>(p.x, t, input));
      if (p.x_gate.data != nullptr) latest[p.width - 1] *= to_float(element<T>(p.x_gate, t, input));
      float sum = p.bias != nullptr ? p.bias[channel] : 0;
      for (int j = 0; j < p.width; ++j) sum = fmaf(weight[j], latest[j], sum);
      if (p.silu) sum /= 1 + expf(-sum);
      if (p.y_gate.data != nullptr) sum *= to_float(element<T>(p.y_gate, t, channel));
      element<T>(p.y, t, channel) = from_float<T>(sum);
      for (int j = 0; j + 1 < p.width; ++j) latest[j] = latest[j + 1];
      if (float* copy = copy_of(p.state, sequence, state, t))
        for (int j = 0; j + 1 < p.width; ++j) copy[j * p.inputs] = latest[j];
    }
  }
  for (int j = 0; j + 1 < p.width; ++j) state[j * p.inputs] = latest[j];
}

__device__ float softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }

__device__ float time_step(const TimeStepParams& p, float dt, std::int64_t i) {
  return fminf(fmaxf(softplus(fmaf(dt, p.scale, p.bias[i])), p.least), p.most);
}

// A thread block processes one value head of a sequence; each thread has one column of its state.
template <class T>
__global__ void delta_kernel(GatedDeltaParams p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  OCTAVO_SHARED(float, q, [kMostKeys]);
  OCTAVO_SHARED(float, k, [kMostKeys]);
  OCTAVO_SHARED(float, decays, [kMostKeys]);
  const std::int64_t sequence = block_x(), head = block_y();
  const std::int64_t begin = p.state.starts[sequence], end = p.state.starts[sequence + 1];
  if (begin == end) return;
  const int threads = static_cast<int>(blockDim.x), column = thread();
  const std::int64_t keys = p.key_dim;
  const std::int64_t key_head = p.tiled ? head % p.key_heads : head * p.key_heads / p.value_heads;
  const std::int64_t first_key = p.key_heads * keys + key_head * keys;
  const std::int64_t value = 2 * p.key_heads * keys + head * p.value_dim + column;
  const bool has_column = column < p.value_dim;
  float* state = state_of(p.state, sequence) + head * keys * p.value_dim + column;
  if (p.state.positions[begin] == 0 && has_column)
    for (std::int64_t i = 0; i < keys; ++i) state[i * p.value_dim] = 0;
  const float rate = -expf(p.a_log[head]);

  // `to` = the head of qkv that begins at `from`, divided by its norm
  const auto take_unit = [&](std::int64_t t, std::int64_t from, float factor, float* to) {
    float squares = 0;
    for (std::int64_t i = thread(); i < keys; i += threads) {
      const float x = to_float(element<T>(p.qkv, t, from + i));
      to[i] = x;
      squares = fmaf(x, x, squares);
    }
    const float scale = factor / sqrtf(block_sum(squares, partials) + 1e-6f);
    for (std::int64_t i = thread(); i < keys; i += threads) to[i] *= scale;
  };
  for (std::int64_t t = begin; t < end; ++t) {
    take_unit(t, key_head * keys, 1 / sqrtf(static_cast<float>(keys)), q);
    take_unit(t, first_key, 1, k);
    for (std::int64_t i = thread(); i < keys; i += threads) {
      const std::int64_t own = p.by_row ? head * keys + i : head;
      decays[i] = expf(rate * softplus(element<float>(p.ba, t, p.value_heads + own) + p.dt_bias[own]));
    }
    __syncthreads();
    if (has_column) {
      const float beta = p.beta_scale / (1 + expf(-element<float>(p.ba, t, head)));
      float held = 0, out = 0;
      for (std::int64_t i = 0; i < keys; ++i) held = fmaf(k[i], decays[i] * state[i * p.value_dim], held);
      const float change = beta * (to_float(element<T>(p.qkv, t, value)) - held);
      for (std::int64_t i = 0; i < keys; ++i) {
        float& s = state[i * p.value_dim];
        s = fmaf(k[i], change, decays[i] * s);
        out = fmaf(q[i], s, out);
      }
      element<T>(p.out, t, head * p.value_dim + column) = from_float<T>(out);
      copy_state(p.state, sequence, state, t, keys, p.value_dim);
    }
    __syncthreads();  // all threads have read q and k
  }
}

// A thread block processes one head of a sequence. Each thread has one column of the head's state, and also
// loads one row of the inputs.
template <class T>
__global__ void wkv_kernel(WkvParams p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  OCTAVO_SHARED(float, r, [kMostKeys]);
  OCTAVO_SHARED(float, k, [kMostKeys]);
  OCTAVO_SHARED(float, decays, [kMostKeys]);
  OCTAVO_SHARED(float, unit, [kMostKeys]);
  OCTAVO_SHARED(float, erased, [kMostKeys]);
  const std::int64_t sequence = block_x(), head = block_y();
  const std::int64_t begin = p.state.starts[sequence], end = p.state.starts[sequence + 1];
  if (begin == end) return;
  const int own = thread();
  const std::int64_t dim = p.head_dim, column = head * dim + own;
  const bool has_column = own < dim;
  const float count = static_cast<float>(dim);
  float* state = state_of(p.state, sequence) + head * dim * dim + own;
  if (p.state.positions[begin] == 0 && has_column)
    for (std::int64_t i = 0; i < dim; ++i) state[i * dim] = 0;
  const auto sigmoid = [](float x) { return 1 / (1 + expf(-x)); };
  for (std::int64_t t = begin; t < end; ++t) {
    float key = 0, value = 0, share = 0, rate = 0;
    if (has_column) {
      const float given = to_float(element<T>(p.k, t, column));
      rate = sigmoid(to_float(element<T>(p.rate, t, column)));
      r[own] = to_float(element<T>(p.r, t, column));
      k[own] = given * (1 + (rate - 1) * p.k_a[column]);
      decays[own] = expf(-0.60653066f * sigmoid(element<float>(p.decay, t, column)));
      value = to_float(element<T>(p.v, t, column));
      if (p.mix.data != nullptr)
        value += sigmoid(to_float(element<T>(p.mix, t, column))) * (to_float(element<T>(p.first, t, column)) - value);
      key = given * p.k_k[column];
      share = r[own] * k[own] * p.r_k[column];
    }
    key /= sqrtf(block_sum(key * key, partials) + p.eps);
    const float bonus = block_sum(share, partials);
    if (has_column) {
      unit[own] = key;
      erased[own] = rate * key;
    }
    __syncthreads();
    float out = 0;
    if (has_column) {
      float held = 0;
      for (std::int64_t i = 0; i < dim; ++i) held = fmaf(unit[i], state[i * dim], held);
      for (std::int64_t i = 0; i < dim; ++i) {
        float& s = state[i * dim];
        s = fmaf(k[i], value, fmaf(-erased[i], held, decays[i] * s));
        out = fmaf(r[i], s, out);
      }
    }
    const float mean = block_sum(out, partials) / count;
    const float off = has_column ? out - mean : 0;
    const float scale = 1 / sqrtf(block_sum(off * off, partials) / count + p.norm_eps);
    if (has_column) {
      const float normed = fmaf(off * scale, p.norm_weight[column], p.norm_bias[column]);
      element<T>(p.out, t, column) =
          from_float<T>(fmaf(bonus, value, normed) * to_float(element<T>(p.gate, t, column)));
      copy_state(p.state, sequence, state, t, dim, dim);
    }
    __syncthreads();  // all threads have read r, k ..
  }
}

// A thread block processes one head of a sequence; each thread has one column of its state.
template <class T>
__global__ void scan_kernel(ScanParams p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, b, [kMostKeys]);
  OCTAVO_SHARED(float, c, [kMostKeys]);
  const std::int64_t sequence = block_x(), head = block_y();
  const std::int64_t begin = p.state.starts[sequence], end = p.state.starts[sequence + 1];
  if (begin == end) return;
  const int threads = static_cast<int>(blockDim.x), column = thread();
  const std::int64_t numbers = p.state_dim, x_begin = head * p.head_dim;
  const std::int64_t b_begin = static_cast<std::int64_t>(p.heads) * p.head_dim + head * p.groups / p.heads * numbers;
  const std::int64_t c_begin = b_begin + p.groups * numbers;
  const bool has_column = column < p.head_dim;
  float* state = state_of(p.state, sequence) + head * numbers * p.head_dim + column;
  if (p.state.positions[begin] == 0 && has_column)
    for (std::int64_t i = 0; i < numbers; ++i) state[i * p.head_dim] = 0;
  const float rate = -expf(p.a_log[head]), d = p.d[head];
  for (std::int64_t t = begin; t < end; ++t) {
    for (std::int64_t i = thread(); i < numbers; i += threads) {
      b[i] = to_float(element<T>(p.xbc, t, b_begin + i));
      c[i] = to_float(element<T>(p.xbc, t, c_begin + i));
    }
    __syncthreads();
    if (has_column) {
      const float step =
          p.dt.data != nullptr ? time_step(p.time_step, to_float(element<T>(p.dt, t, head)), head) : 1;
      const float decay = expf(rate * step), x = to_float(element<T>(p.xbc, t, x_begin + column));
      float out = 0;
      for (std::int64_t i = 0; i < numbers; ++i) {
        float& s = state[i * p.head_dim];
        s = fmaf(b[i], step * x, decay * s);
        out = fmaf(c[i], s, out);
      }
      element<T>(p.out, t, x_begin + column) = from_float<T>(fmaf(d, x, out));
      copy_state(p.state, sequence, state, t, numbers, p.head_dim);
    }
    __syncthreads();  // all threads have read b and c
  }
}

// Each thread processes one channel.
template <class T>
__global__ void __launch_bounds__(kConvThreads) channel_scan_kernel(ChannelScanParams p) {
  wait_for_kernels();
  const std::int64_t sequence = block_x(), channel = block_y() * kConvThreads + thread();
  const std::int64_t begin = p.state.starts[sequence], end = p.state.starts[sequence + 1];
  if (channel >= p.channels || begin == end) return;
  float* state = state_of(p.state, sequence) + channel;
  if (p.state.positions[begin] == 0)
    for (std::int64_t i = 0; i < p.state_dim; ++i) state[i * p.channels] = 0;
  for (std::int64_t t = begin; t < end; ++t) {
    const float step = time_step(p.time_step, to_float(element<T>(p.dt, t, channel)), channel);
    const float x = to_float(element<T>(p.x, t, channel));
    float out = 0;
    for (std::int64_t i = 0; i < p.state_dim; ++i) {
      const float decay = expf(-expf(element<float>(p.a_log, channel, i)) * step);
      float& s = state[i * p.channels];
      s = fmaf(to_float(element<T>(p.bc, t, i)), step * x, decay * s);
      out = fmaf(to_float(element<T>(p.bc, t, p.state_dim + i)), s, out);
    }
    element<T>(p.out, t, channel) = from_float<T>(fmaf(p.d[channel], x, out));
    copy_state(p.state, sequence, state, t, p.state_dim, p.channels);
  }
}

}  // namespace

void causal_conv(StreamHandle stream, const ConvParams& p) {
  const dim3 grid(static_cast<unsigned>(p.state.sequences),
                  static_cast<unsigned>((p.inputs + kConvThreads - 1) / kConvThreads));
  for_activation(p.x.format,
                 [&](auto t) { launch(stream, grid, kConvThreads, 0, conv_kernel<decltype(t)>, p); });
}

void gated_delta(StreamHandle stream, const GatedDeltaParams& p) {
  const dim3 grid(static_cast<unsigned>(p.state.sequences), static_cast<unsigned>(p.value_heads));
  const int threads = (p.value_dim + kWarp - 1) / kWarp * kWarp;
  for_activation(p.qkv.format,
                 [&](auto t) { launch(stream, grid, threads, 0, delta_kernel<decltype(t)>, p); });
}

void wkv(StreamHandle stream, const WkvParams& p) {
  const dim3 grid(static_cast<unsigned>(p.state.sequences), static_cast<unsigned>(p.heads));
  const int threads = (p.head_dim + kWarp - 1) / kWarp * kWarp;
  for_activation(p.r.format, [&](auto t) { launch(stream, grid, threads, 0, wkv_kernel<decltype(t)>, p); });
}

void scan(StreamHandle stream, const ScanParams& p) {
  const dim3 grid(static_cast<unsigned>(p.state.sequences), static_cast<unsigned>(p.heads));
  const int threads = (p.head_dim + kWarp - 1) / kWarp * kWarp;
  for_activation(p.xbc.format, [&](auto t) { launch(stream, grid, threads, 0, scan_kernel<decltype(t)>, p); });
}

void channel_scan(StreamHandle stream, const ChannelScanParams& p) {
  const dim3 grid(static_cast<unsigned>(p.state.sequences),
                  static_cast<unsigned>((p.channels + kConvThreads - 1) / kConvThreads));
  for_activation(p.x.format,
                 [&](auto t) { launch(stream, grid, kConvThreads, 0, channel_scan_kernel<decltype(t)>, p); });
}

}  // namespace octavo::cuda
