#include "transfer/peers/messages.h"

#include <algorithm>
#include <cstring>

#include "base/pack.h"

namespace octavo {
namespace {

constexpr std::uint32_t kFrameBytesMax = 64 << 10;
constexpr std::uint64_t kVersion = layout_hash<TransferMessage>();

// Returns true if no number is negative and all enum values exist. The peer may have sent any bytes.
template <class T>
bool in_range(const T& value) {
  if constexpr (std::is_same_v<T, BlockWay>) {
    return static_cast<std::size_t>(value) < std::size(kBlockWayNames);
  } else if constexpr (std::is_same_v<T, KvTransferFailure>) {
    return static_cast<std::size_t>(value) < std::size(kKvTransferFailureNames);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return value >= T{};
  } else if constexpr (std::is_same_v<T, std::string>) {
    return true;
  } else if constexpr (requires { value.begin(); }) {
    return std::ranges::all_of(value, [](const auto& item) { return in_range(item); });
  } else {
    bool good = true;
    boost::pfr::for_each_field(value, [&](const auto& field) { good = good && in_range(field); });
    return good;
  }
}

}  // namespace

Result<> send_message(PeerSocket& socket, const TransferMessage& message) {
  std::string frame(sizeof(std::uint32_t), '\0');
  Packer packer(frame);
  packer.put(kVersion);
  packer.put(message);
  const auto size = static_cast<std::uint32_t>(frame.size() - sizeof(std::uint32_t));
  std::memcpy(frame.data(), &size, sizeof size);
  return socket.send(std::as_bytes(std::span(frame)));
}

Result<TransferMessage> receive_message(PeerSocket& socket) {
  std::uint32_t size = 0;
  TRY_VOID(socket.receive(std::as_writable_bytes(std::span(&size, 1))));
  if (size > kFrameBytesMax)
    return failure(ErrorCode::corrupt, "a message has {} bytes, but at most {} are allowed", size,
                   kFrameBytesMax);
  std::vector<std::byte> frame(size);
  TRY_VOID(socket.receive(frame));
  Unpacker unpacker(frame);
  std::uint64_t version = 0;
  unpacker.get(version);
  if (unpacker.good() && version != kVersion)
    return failure(
        ErrorCode::corrupt,
        "the other engine has transfer version {:x}, expected {:x}: run the same octavo on both engines",
        version, kVersion);
  TransferMessage message;
  unpacker.get(message);
  if (!unpacker.complete() || !std::visit([](const auto& each) { return in_range(each); }, message))
    return failure(ErrorCode::corrupt, "received a message of {} bytes that this version does not know",
                   size);
  return message;
}

}  // namespace octavo
