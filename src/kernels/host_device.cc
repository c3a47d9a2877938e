#include "kernels/host_device.h"

#include <cstring>

#include "base/host_memory.h"

namespace octavo {

std::size_t HostDevice::memory_bytes() const { return host_memory().all(); }
std::size_t HostDevice::available_bytes() const { return host_memory().available; }

void HostDevice::upload(Stream&, const View& device, const void* host) {
  CHECK(device.contiguous());
  if (device.bytes() > 0) std::memcpy(device.data, host, static_cast<std::size_t>(device.bytes()));
}

void HostDevice::download(Stream&, void* host, const View& device) {
  CHECK(device.contiguous());
  if (device.bytes() > 0) std::memcpy(host, device.data, static_cast<std::size_t>(device.bytes()));
}

void HostDevice::copy(Stream& stream, const View& to, const View& from) {
  CHECK(from.contiguous() && to.bytes() == from.bytes());
  upload(stream, to, from.data);
}

void HostDevice::clear(Stream&, const View& device) {
  CHECK(device.contiguous());
  if (device.bytes() > 0) std::memset(device.data, 0, static_cast<std::size_t>(device.bytes()));
}

bool rows_contiguous(const View& view) {
  std::int64_t step = 1;
  for (int axis = view.rank - 1; axis >= 1; --axis) {
    if (view.size(axis) != 1 && view.stride[static_cast<std::size_t>(axis)] != step) return false;
    step *= view.size(axis);
  }
  return view.rank >= 1 && (view.rank > 1 || view.size(0) <= 1 || view.stride[0] == 1);
}

void check_indices(std::string_view what, const View& indices, std::int64_t limit) {
  for (std::int64_t i = 0; i < indices.elements(); ++i) {
    const std::int64_t index =
        indices.dtype == DType::i32 ? indices.as<std::int32_t>()[i] : indices.as<std::int64_t>()[i];
    CHECK(index >= 0 && index < limit, "{} {} of {}", what, index, limit);
  }
}

void check_segments(std::string_view what, const View& starts, std::int64_t limit) {
  const auto* at = starts.as<std::int32_t>();
  CHECK(at[0] >= 0 && at[starts.size(0) - 1] <= limit, "{}: [{}, {}) of {}", what, at[0],
        at[starts.size(0) - 1], limit);
  for (std::int64_t i = 1; i < starts.size(0); ++i)
    CHECK(at[i - 1] < at[i], "{}: segment {} is [{}, {})", what, i - 1, at[i - 1], at[i]);
}

}  // namespace octavo
