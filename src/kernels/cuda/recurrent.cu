// Layers with a state in place of a cache: each sequence's tokens one after the other.
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

// A thread for each channel.
template <class T>
__global__ void __launch_bounds__(kConvThreads) conv_kernel(ConvParams p) {
  const std::int64_t sequence = block_x(), channel = block_y() * kConvThreads + thread();
  const std::int64_t begin = p.state.starts[sequence], end = p.state.starts[sequence + 1];
  if (channel >= p.channels || begin == end) return;
  float* state = state_of(p.state, sequence) + channel;
  const bool begins = p.state.positions[begin] == 0;
  float weight[kMostWidth], latest[kMostWidth];
  for (int j = 0; j < p.width; ++j) weight[j] = element<float>(p.weight, channel, j);
  for (int j = 0; j + 1 < p.width; ++j) latest[j] = begins ? 0 : state[j * p.channels];
  for (std::int64_t t = begin; t < end; ++t) {
    latest[p.width - 1] = to_float(element<T>(p.x, t, channel));
    float sum = 0;
    for (int j = 0; j < p.width; ++j) sum = fmaf(weight[j], latest[j], sum);
    element<T>(p.y, t, channel) = from_float<T>(sum / (1 + expf(-sum)));
    for (int j = 0; j + 1 < p.width; ++j) latest[j] = latest[j + 1];
  }
  for (int j = 0; j + 1 < p.width; ++j) state[j * p.channels] = latest[j];
}

// A block for each value head of a sequence, a thread for each column of its state.
template <class T>
__global__ void delta_kernel(GatedDeltaParams p) {
  OCTAVO_SHARED(float, partials, [kWarp]);
  OCTAVO_SHARED(float, q, [kMostKeys]);
  OCTAVO_SHARED(float, k, [kMostKeys]);
  const std::int64_t sequence = block_x(), head = block_y();
  const std::int64_t begin = p.state.starts[sequence], end = p.state.starts[sequence + 1];
  if (begin == end) return;
  const int threads = static_cast<int>(blockDim.x), column = thread();
  const std::int64_t keys = p.key_dim, key_head = head * p.key_heads / p.value_heads;
  const std::int64_t first_key = p.key_heads * keys + key_head * keys;
  const std::int64_t value = 2 * p.key_heads * keys + head * p.value_dim + column;
  const bool has_column = column < p.value_dim;
  float* state = state_of(p.state, sequence) + head * keys * p.value_dim + column;
  if (p.state.positions[begin] == 0 && has_column)
    for (std::int64_t i = 0; i < keys; ++i) state[i * p.value_dim] = 0;
  const float rate = -expf(p.a_log[head]), dt_bias = p.dt_bias[head];

  // `to` = the head of qkv that begins there, divided by its length
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
    __syncthreads();
    if (has_column) {
      const float x = element<float>(p.ba, t, p.value_heads + head) + dt_bias;
      const float decay = expf(rate * (x > 20 ? x : log1pf(expf(x))));
      const float beta = 1 / (1 + expf(-element<float>(p.ba, t, head)));
      float held = 0, out = 0;
      for (std::int64_t i = 0; i < keys; ++i) held = fmaf(k[i], state[i * p.value_dim], held);
      const float change = beta * (to_float(element<T>(p.qkv, t, value)) - decay * held);
      for (std::int64_t i = 0; i < keys; ++i) {
        float& s = state[i * p.value_dim];
        s = fmaf(k[i], change, decay * s);
        out = fmaf(q[i], s, out);
      }
      element<T>(p.out, t, head * p.value_dim + column) = from_float<T>(out);
    }
    __syncthreads();  // q and k are read
  }
}

}  // namespace

void causal_conv(StreamHandle stream, const ConvParams& p) {
  const dim3 grid(static_cast<unsigned>(p.state.sequences),
                  static_cast<unsigned>((p.channels + kConvThreads - 1) / kConvThreads));
  for_activation(p.x.format,
                 [&](auto t) { launch(stream, grid, kConvThreads, 0, conv_kernel<decltype(t)>, p); });
}

void gated_delta(StreamHandle stream, const GatedDeltaParams& p) {
  const dim3 grid(static_cast<unsigned>(p.state.sequences), static_cast<unsigned>(p.value_heads));
  const int threads = (p.value_dim + kWarp - 1) / kWarp * kWarp;
  for_activation(p.qkv.format,
                 [&](auto t) { launch(stream, grid, threads, 0, delta_kernel<decltype(t)>, p); });
}

}  // namespace octavo::cuda
