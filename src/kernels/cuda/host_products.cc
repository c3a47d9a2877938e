#include "kernels/cuda/host_products.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/backends.h"
#include "kernels/cuda_host_weights.h"

namespace octavo::cuda {
namespace {

// Divides memory into views. Without memory, only bytes() is valid.
class PinnedPieces {
 public:
  explicit PinnedPieces(std::byte* memory) : memory_(memory) {}
  View take(DType type, std::initializer_list<std::int64_t> shape) {
    constexpr std::size_t kCacheLine = 64;
    const View view = View::of(memory_ == nullptr ? nullptr : memory_ + bytes_, type, shape);
    bytes_ += (static_cast<std::size_t>(view.bytes()) + kCacheLine - 1) / kCacheLine * kCacheLine;
    return view;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* memory_;
  std::size_t bytes_ = 0;
};

// Returns the arguments for the CPU, without matrices. `act` is the format of its activations.
GroupedMatmulArgs lay_out(const GroupedMatmulArgs& on_device, DType act, PinnedPieces& pieces) {
  const auto like = [&](const View& view, DType type) {
    if (!view) return View{};
    return view.rank == 1 ? pieces.take(type, {view.size(0)})
                          : pieces.take(type, {view.size(0), view.size(1)});
  };
  return {.x = like(on_device.x, act),
          .rows = like(on_device.rows, DType::i32),
          .starts = like(on_device.starts, DType::i32),
          .w = {},
          .bias = like(on_device.bias, DType::f32),
          .y = like(on_device.y, act)};
}

HostRowsParams rows_between(const GroupedMatmulArgs& on_device, const GroupedMatmulArgs& on_host) {
  const auto rows = [](const View& view) { return Rows{view.data, format_of(view.dtype), view.stride[0]}; };
  const auto integers = [](const View& view) { return static_cast<std::int32_t*>(view.data); };
  const auto floats = [](const View& view) { return static_cast<float*>(view.data); };
  return {.x = rows(on_device.x),
          .host_x = rows(on_host.x),
          .m = on_device.x.size(0),
          .cols = on_device.x.size(1),
          .rows = integers(on_device.rows),
          .host_rows = integers(on_host.rows),
          .pairs = on_device.y.size(0),
          .starts = integers(on_device.starts),
          .host_starts = integers(on_host.starts),
          .experts = on_device.starts.size(0) - 1,
          .bias = floats(on_device.bias),
          .host_bias = floats(on_host.bias),
          .bias_stride = on_device.bias ? on_device.bias.stride[0] : 0,
          .y = rows(on_device.y),
          .host_y = rows(on_host.y),
          .outputs = on_device.y.size(1)};
}

}  // namespace

Result<std::unique_ptr<HostProducts>> HostProducts::make(int threads) {
  TRY(Backend cpu, make_cpu_backend({.threads = threads, .isa = {}}));
  return std::unique_ptr<HostProducts>(new HostProducts(std::move(cpu)));
}

void HostProducts::grouped_matmul(CudaStream& stream, const GroupedMatmulArgs& args) {
  if (args.y.size(0) == 0) return;
  std::vector<const Weight*> matrices;
  for (const Weight* w : args.w) {
    matrices.push_back(static_cast<const CudaWeight&>(*w).host());
    CHECK(matrices.back() != nullptr, "the CPU computes some experts of a product, and the GPU the others");
  }
  const DType act = matrices[0]->activation();
  PinnedPieces sizes(nullptr);
  lay_out(args, act, sizes);
  auto* const memory = static_cast<std::byte*>(pinned_.at_least(sizes.bytes(), pinned_buffer));
  CHECK(memory != nullptr, "no pinned memory for {} bytes of activations: lower --max-num-batched-tokens",
        sizes.bytes());
  PinnedPieces pieces(memory);
  const GroupedMatmulArgs on_host = lay_out(args, act, pieces);
  const HostRowsParams rows = rows_between(args, on_host);
  runtime::enter_device();
  send_rows(stream.handle(), rows);
  stream.call_host([this, on_host, matrices = std::move(matrices)] {
    GroupedMatmulArgs product = on_host;
    product.w = matrices;
    cpu_.ops.grouped_matmul(*cpu_.stream, product);
  });
  take_rows(stream.handle(), rows);
}

}  // namespace octavo::cuda

namespace octavo {

Result<Backend*> cuda_host_backend(Device& device, int threads) {
  cuda::CudaStream& stream = static_cast<cuda::CudaDevice&>(device).stream();
  if (!stream.host_products()) {
    if (threads == 0) threads = std::max(1, usable_processors() - 1);
    TRY(stream.host_products(), cuda::HostProducts::make(threads));
  }
  return &stream.host_products()->cpu();
}

WeightPtr cuda_compute_on_host(WeightPtr weight, DType activation) {
  return std::make_unique<const cuda::CudaWeight>(activation, std::move(weight));
}

}  // namespace octavo
