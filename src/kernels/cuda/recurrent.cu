// Recurrent layers. The tokens of each sequence are processed in order.
#include "kernels/cuda/views.h"
#include "kernels/operators/states.h"

namespace octavo::cuda {
namespace {

constexpr int kConvThreads = 128;

// The states and tokens of one sequence of a step.
struct Sequence {
  const StatePlan& plan;
  const View& states;
  std::int64_t begin, end;  // tokens of the sequence
  float* state;             // state of the sequence, in its slot

  __device__ Sequence(const StatePlan& of, const View& all, std::int64_t index)
      : plan(of),
        states(all),
        begin(items<std::int32_t>(of.starts)[index]),
        end(items<std::int32_t>(of.starts)[index + 1]),
        state(&element<float>(all, items<std::int32_t>(of.slots)[index], 0)) {}

  __device__ bool begins() const { return items<std::int32_t>(plan.positions)[begin] == 0; }
  // Returns the address to which the state after token t is copied, at the same offset in its slot as `from`;
  // null: no copy.
  __device__ float* copy_of(const float* from, std::int64_t t) const {
    const std::int32_t slot = plan.copies ? items<std::int32_t>(plan.copies)[t] : -1;
    return slot < 0 ? nullptr : &element<float>(states, slot, from - state);
  }
  // Copies `count` elements of a state, `stride` elements apart, to the address that copy_of() returns.
  __device__ void copy(const float* from, std::int64_t t, std::int64_t count, std::int64_t stride) const {
    if (float* to = copy_of(from, t))
      for (std::int64_t i = 0; i < count; ++i) to[i * stride] = from[i * stride];
  }
};

// A thread processes one input, and all channels of this input one after the other.
template <class T>
__global__ void __launch_bounds__(kConvThreads) conv_kernel(ConvArgs p) {
  wait_for_kernels();
  const Sequence sequence(p.plan, p.state, block_x());
  const std::int64_t input = block_y() * kConvThreads + thread(), inputs = p.x.size(1);
  if (input >= inputs || sequence.begin == sequence.end) return;
  float* state = sequence.state + input;
  const bool begins = sequence.begins();
  const int width = static_cast<int>(p.weight.size(1));
  float weight[kMaxConvWidth], latest[kMaxConvWidth];
  for (std::int64_t channel = input; channel < p.y.size(1); channel += inputs) {
    for (int j = 0; j < width; ++j) weight[j] = element<float>(p.weight, channel, j);
    for (int j = 0; j + 1 < width; ++j) latest[j] = begins ? 0 : state[j * inputs];
    for (std::int64_t t = sequence.begin; t < sequence.end + p.ahead; ++t) {
      latest[width - 1] = t < sequence.end ? to_float(element<T>(p.x, t, input)) : 0;
      if (p.x_gate && t < sequence.end) latest[width - 1] *= to_float(element<T>(p.x_gate, t, input));
      const std::int64_t to = t - p.ahead;
      if (to >= sequence.begin) {
        float sum = p.bias ? items<float>(p.bias)[channel] : 0;
        for (int j = 0; j < width; ++j) sum = fmaf(weight[j], latest[j], sum);
        if (p.silu) sum /= 1 + expf(-sum);
        if (p.y_gate) sum *= to_float(element<T>(p.y_gate, to, channel));
        element<T>(p.y, to, channel) = from_float<T>(sum);
      }
      for (int j = 0; j + 1 < width; ++j) latest[j] = latest[j + 1];
      if (t >= sequence.end) continue;
      if (float* copy = sequence.copy_of(state, t))
        for (int j = 0; j + 1 < width; ++j) copy[j * inputs] = latest[j];
    }
  }
  if (p.ahead > 0) return;
  for (int j = 0; j + 1 < width; ++j) state[j * inputs] = latest[j];
}

__device__ float softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }

__device__ float time_step(const TimeStep& p, float dt, std::int64_t i) {
  return fminf(fmaxf(softplus(fmaf(dt, p.scale, items<float>(p.bias)[i])), p.least), p.most);
}

// A thread block processes one value head of a sequence; each thread has one column of its state.
template <class T>
__global__ void delta_kernel(GatedDeltaArgs p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  OCTAVO_SHARED(float, q, [kMaxStateDim]);
  OCTAVO_SHARED(float, k, [kMaxStateDim]);
  OCTAVO_SHARED(float, decays, [kMaxStateDim]);
  const std::int64_t head = block_y();
  const Sequence sequence(p.plan, p.state, block_x());
  if (sequence.begin == sequence.end) return;
  const int threads = static_cast<int>(blockDim.x), column = thread();
  const std::int64_t heads = p.state.size(1), keys = p.state.size(2), values = p.state.size(3);
  const std::int64_t key_head = p.key_head_of(head);
  const std::int64_t first_key = p.key_heads * keys + key_head * keys;
  const std::int64_t value = 2 * p.key_heads * keys + head * values + column;
  const bool has_column = column < values, by_row = p.dt_bias.size(0) != heads;
  float* state = sequence.state + head * keys * values + column;
  if (sequence.begins() && has_column)
    for (std::int64_t i = 0; i < keys; ++i) state[i * values] = 0;
  const float rate = expf(items<float>(p.a_log)[head]);
  const auto decay = [&](float a) {
    if (p.least_log < 0) return expf(p.least_log / (1 + expf(-rate * a)));
    return expf(-rate * softplus(a));
  };

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
  for (std::int64_t t = sequence.begin; t < sequence.end; ++t) {
    take_unit(t, key_head * keys, 1 / sqrtf(static_cast<float>(keys)), q);
    take_unit(t, first_key, 1, k);
    for (std::int64_t i = thread(); i < keys; i += threads) {
      const std::int64_t own = by_row ? head * keys + i : head;
      decays[i] = decay(element<float>(p.ba, t, heads + own) + items<float>(p.dt_bias)[own]);
    }
    __syncthreads();
    if (has_column) {
      const float beta = p.beta_scale / (1 + expf(-element<float>(p.ba, t, head)));
      float held = 0, out = 0;
      for (std::int64_t i = 0; i < keys; ++i) held = fmaf(k[i], decays[i] * state[i * values], held);
      const float change = beta * (to_float(element<T>(p.qkv, t, value)) - held);
      for (std::int64_t i = 0; i < keys; ++i) {
        float& s = state[i * values];
        s = fmaf(k[i], change, decays[i] * s);
        out = fmaf(q[i], s, out);
      }
      element<T>(p.out, t, head * values + column) = from_float<T>(out);
      sequence.copy(state, t, keys, values);
    }
    __syncthreads();  // The barrier waits until all threads have read q and k.
  }
}

// A thread block processes one head of a sequence. Each thread has one column of the head's state, and also
// loads one row of the inputs.
template <class T>
__global__ void wkv_kernel(WkvArgs p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  OCTAVO_SHARED(float, r, [kMaxStateDim]);
  OCTAVO_SHARED(float, k, [kMaxStateDim]);
  OCTAVO_SHARED(float, decays, [kMaxStateDim]);
  OCTAVO_SHARED(float, unit, [kMaxStateDim]);
  OCTAVO_SHARED(float, erased, [kMaxStateDim]);
  const std::int64_t head = block_y();
  const Sequence sequence(p.plan, p.state, block_x());
  if (sequence.begin == sequence.end) return;
  const int own = thread();
  const std::int64_t dim = p.state.size(2), column = head * dim + own;
  const bool has_column = own < dim;
  const float count = static_cast<float>(dim);
  float* state = sequence.state + head * dim * dim + own;
  if (sequence.begins() && has_column)
    for (std::int64_t i = 0; i < dim; ++i) state[i * dim] = 0;
  const auto sigmoid = [](float x) { return 1 / (1 + expf(-x)); };
  for (std::int64_t t = sequence.begin; t < sequence.end; ++t) {
    float key = 0, value = 0, share = 0, rate = 0;
    if (has_column) {
      const float given = to_float(element<T>(p.k, t, column));
      rate = sigmoid(to_float(element<T>(p.rate, t, column)));
      r[own] = to_float(element<T>(p.r, t, column));
      k[own] = given * (1 + (rate - 1) * items<float>(p.k_a)[column]);
      decays[own] = expf(-0.60653066f * sigmoid(element<float>(p.decay, t, column)));
      value = to_float(element<T>(p.v, t, column));
      if (p.mix)
        value += sigmoid(to_float(element<T>(p.mix, t, column))) * (to_float(element<T>(p.first, t, column)) - value);
      key = given * items<float>(p.k_k)[column];
      share = r[own] * k[own] * items<float>(p.r_k)[column];
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
    const float scale = 1 / sqrtf(block_sum(off * off, partials) / count + p.norm.eps);
    if (has_column) {
      const float normed =
          fmaf(off * scale, items<float>(p.norm.weight)[column], items<float>(p.norm.bias)[column]);
      element<T>(p.out, t, column) =
          from_float<T>(fmaf(bonus, value, normed) * to_float(element<T>(p.gate, t, column)));
      sequence.copy(state, t, dim, dim);
    }
    __syncthreads();  // The barrier waits until all threads have read r, k and the other inputs.
  }
}

// A thread block processes one head of a sequence; each thread has one column of its state.
template <class T>
__global__ void scan_kernel(ScanArgs p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, b, [kMaxStateDim]);
  OCTAVO_SHARED(float, c, [kMaxStateDim]);
  const std::int64_t head = block_y();
  const Sequence sequence(p.plan, p.state, block_x());
  if (sequence.begin == sequence.end) return;
  const int threads = static_cast<int>(blockDim.x), column = thread();
  const std::int64_t heads = p.state.size(1), numbers = p.state.size(2), dim = p.state.size(3);
  const std::int64_t x_begin = head * dim, b_begin = heads * dim + head * p.groups / heads * numbers;
  const std::int64_t c_begin = b_begin + p.groups * numbers;
  const bool has_column = column < dim;
  float* state = sequence.state + head * numbers * dim + column;
  if (sequence.begins() && has_column)
    for (std::int64_t i = 0; i < numbers; ++i) state[i * dim] = 0;
  const float rate = -expf(items<float>(p.a_log)[head]), d = items<float>(p.d)[head];
  for (std::int64_t t = sequence.begin; t < sequence.end; ++t) {
    for (std::int64_t i = thread(); i < numbers; i += threads) {
      b[i] = to_float(element<T>(p.xbc, t, b_begin + i));
      c[i] = to_float(element<T>(p.xbc, t, c_begin + i));
    }
    __syncthreads();
    if (has_column) {
      const float step = p.dt ? time_step(p.time_step, to_float(element<T>(p.dt, t, head)), head) : 1;
      const float decay = expf(rate * step), x = to_float(element<T>(p.xbc, t, x_begin + column));
      float out = 0;
      for (std::int64_t i = 0; i < numbers; ++i) {
        float& s = state[i * dim];
        s = fmaf(b[i], step * x, decay * s);
        out = fmaf(c[i], s, out);
      }
      element<T>(p.out, t, x_begin + column) = from_float<T>(fmaf(d, x, out));
      sequence.copy(state, t, numbers, dim);
    }
    __syncthreads();  // The barrier waits until all threads have read b and c.
  }
}

// Each thread processes one channel.
template <class T>
__global__ void __launch_bounds__(kConvThreads) channel_scan_kernel(ChannelScanArgs p) {
  wait_for_kernels();
  const Sequence sequence(p.plan, p.state, block_x());
  const std::int64_t channel = block_y() * kConvThreads + thread();
  const std::int64_t numbers = p.state.size(1), channels = p.state.size(2);
  if (channel >= channels || sequence.begin == sequence.end) return;
  float* state = sequence.state + channel;
  if (sequence.begins())
    for (std::int64_t i = 0; i < numbers; ++i) state[i * channels] = 0;
  for (std::int64_t t = sequence.begin; t < sequence.end; ++t) {
    const float step = time_step(p.time_step, to_float(element<T>(p.dt, t, channel)), channel);
    const float x = to_float(element<T>(p.x, t, channel));
    float out = 0;
    for (std::int64_t i = 0; i < numbers; ++i) {
      const float decay = expf(-expf(element<float>(p.a_log, channel, i)) * step);
      float& s = state[i * channels];
      s = fmaf(to_float(element<T>(p.bc, t, i)), step * x, decay * s);
      out = fmaf(to_float(element<T>(p.bc, t, numbers + i)), s, out);
    }
    element<T>(p.out, t, channel) = from_float<T>(fmaf(items<float>(p.d)[channel], x, out));
    sequence.copy(state, t, numbers, channels);
  }
}

// Weighted mean over tokens; see CompressArgs::state.
struct Mean {
  float most = 0, weights = 0, values = 0;  // if weights == 0, no token was added yet

  __device__ void add(float value, float gate) {
    const float before = weights > 0 ? most : gate;
    most = fmaxf(before, gate);
    const float old = expf(before - most), now = expf(gate - most);
    weights = fmaf(weights, old, now);
    values = fmaf(values, old, value * now);
  }
  // `state` is the state of a set of columns, [3, dim], from the column of this mean on.
  __device__ void load(const float* state, std::int64_t dim) {
    most = state[0];
    weights = state[dim];
    values = state[2 * dim];
  }
  __device__ void store(float* state, std::int64_t dim) const {
    state[0] = most;
    state[dim] = weights;
    state[2 * dim] = values;
  }
};

// Each thread processes one column of a sequence's entries.
__global__ void __launch_bounds__(kConvThreads) compress_kernel(CompressArgs p) {
  wait_for_kernels();
  const Sequence sequence(p.plan, p.state, block_x());
  const std::int64_t column = block_y() * kConvThreads + thread(), dim = p.means.size(1);
  const int sets = static_cast<int>(p.state.size(1)), rate = static_cast<int>(p.bias.size(0));
  if (column >= dim || sequence.begin == sequence.end) return;
  Mean own, next;  // of the current entry and, with two sets, of the entry after it
  float* const state = sequence.state + column;
  const auto store = [&](float* to) {
    own.store(to, dim);
    if (sets > 1) next.store(to + 3 * dim, dim);
  };
  if (!sequence.begins()) {
    own.load(state, dim);
    if (sets > 1) next.load(state + 3 * dim, dim);
  }
  for (std::int64_t t = sequence.begin; t < sequence.end; ++t) {
    const int offset = items<std::int32_t>(p.plan.positions)[t] % rate;
    const auto add = [&](Mean& mean, std::int64_t at) {
      mean.add(element<float>(p.values, t, at),
               element<float>(p.gates, t, at) + element<float>(p.bias, offset, at));
    };
    // A token's last set of columns belongs to its own entry. If there are two sets, the first one belongs to
    // the next entry.
    if (sets > 1) add(next, column);
    add(own, (sets - 1) * dim + column);
    if (offset == rate - 1) {
      element<float>(p.means, t, column) = own.values / own.weights;
      own = next;
      next = {};
    }
    if (float* copy = sequence.copy_of(state, t)) store(copy);
  }
  store(state);
}

// Launches a thread for each of `channels` channels of each sequence.
template <class Args>
void launch_channels(Stream& stream, std::int64_t channels, void (*kernel)(Args), const Args& args) {
  const dim3 grid(static_cast<unsigned>(args.plan.slots.size(0)),
                  static_cast<unsigned>((channels + kConvThreads - 1) / kConvThreads));
  launch(handle_of(stream), grid, kConvThreads, 0, kernel, args);
}

// Launches a thread block for each head of each sequence, with a thread for each column of its state
// [slots, heads, rows, columns].
template <class Args>
void launch_heads(Stream& stream, void (*kernel)(Args), const Args& args) {
  const dim3 grid(static_cast<unsigned>(args.plan.slots.size(0)), static_cast<unsigned>(args.state.size(1)));
  const int threads = static_cast<int>((args.state.size(3) + kWarp - 1) / kWarp * kWarp);
  launch(handle_of(stream), grid, threads, 0, kernel, args);
}

}  // namespace

void run_causal_conv(Stream& stream, const ConvArgs& args) {
  for_activation(args.x.dtype,
                 [&](auto t) { launch_channels(stream, args.x.size(1), conv_kernel<decltype(t)>, args); });
}

void run_compress(Stream& stream, const CompressArgs& args) {
  launch_channels(stream, args.means.size(1), compress_kernel, args);
}

void run_gated_delta(Stream& stream, const GatedDeltaArgs& args) {
  for_activation(args.qkv.dtype, [&](auto t) { launch_heads(stream, delta_kernel<decltype(t)>, args); });
}

void run_wkv(Stream& stream, const WkvArgs& args) {
  for_activation(args.r.dtype, [&](auto t) { launch_heads(stream, wkv_kernel<decltype(t)>, args); });
}

void run_scan(Stream& stream, const ScanArgs& args) {
  for_activation(args.xbc.dtype, [&](auto t) { launch_heads(stream, scan_kernel<decltype(t)>, args); });
}

void run_channel_scan(Stream& stream, const ChannelScanArgs& args) {
  for_activation(args.x.dtype, [&](auto t) {
    launch_channels(stream, args.state.size(2), channel_scan_kernel<decltype(t)>, args);
  });
}

}  // namespace octavo::cuda
