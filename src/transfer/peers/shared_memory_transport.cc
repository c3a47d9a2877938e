// Transport for two processes of one host: the producer writes into the consumer's memory. The consumer
// sends (process, descriptor, secret). The producer opens the memory through /proc, which works only with
// the same user and process namespace. The secret at the beginning of the memory proves that the producer has
// opened the memory that the consumer offered.
#include <unistd.h>

#include <cstring>

#include "transfer/peers/transport.h"

namespace octavo {
namespace {

constexpr std::size_t kHead = 64;  // bytes before the first slot
constexpr std::size_t kSecretBytes = 32;

class SharedMemorySender final : public BlockSender {
 public:
  SharedMemorySender(SharedMemory memory, std::size_t slot_bytes)
      : memory_(std::move(memory)), slot_bytes_(slot_bytes) {}

  std::span<std::byte> slot(int number, std::size_t bytes) override {
    return memory_.bytes().subspan(kHead + static_cast<std::size_t>(number) * slot_bytes_, bytes);
  }
  Result<> send(std::span<const std::byte>) override { return {}; }

 private:
  SharedMemory memory_;
  std::size_t slot_bytes_;
};

class SharedMemoryReceiver final : public BlockReceiver {
 public:
  explicit SharedMemoryReceiver(const TransferSlots& slots) : slots_(slots) {}
  Result<std::span<const std::byte>> receive(int number, std::size_t bytes) override {
    return slots_.slot(number, bytes);
  }

 private:
  const TransferSlots& slots_;
};

}  // namespace

Result<TransferSlots> TransferSlots::create(std::size_t slot_bytes) {
  TransferSlots slots;
  TRY(slots.memory_, SharedMemory::create(kHead + kTransferSlots * slot_bytes));
  slots.memory_.populate();
  slots.slot_bytes_ = slot_bytes;
  const std::string secret = fmt::format("{:016x}{:016x}", secret_seed(), secret_seed());
  std::memcpy(slots.memory_.bytes().data(), secret.data(), kSecretBytes);
  return slots;
}

std::span<std::byte> TransferSlots::slot(int number, std::size_t bytes) const {
  return memory_.bytes().subspan(kHead + static_cast<std::size_t>(number) * slot_bytes_, bytes);
}

SegmentOffer TransferSlots::offer() const {
  return {.process = getpid(),
          .descriptor = memory_.fd(),
          .slot_bytes = static_cast<std::int64_t>(slot_bytes_),
          .secret = std::string(reinterpret_cast<const char*>(memory_.bytes().data()), kSecretBytes)};
}

std::unique_ptr<BlockSender> shared_memory_sender(const SegmentOffer& offer) {
  if (offer.slot_bytes == 0 || offer.secret.size() != kSecretBytes) return nullptr;
  auto memory = SharedMemory::open_of(offer.process, offer.descriptor);
  if (!memory) return nullptr;
  const std::span<std::byte> bytes = memory->bytes();
  const auto slot = static_cast<std::size_t>(offer.slot_bytes);
  if (bytes.size() < kHead || (bytes.size() - kHead) / kTransferSlots != slot) return nullptr;
  if (std::memcmp(bytes.data(), offer.secret.data(), kSecretBytes) != 0) return nullptr;
  memory->populate();
  return std::make_unique<SharedMemorySender>(*std::move(memory), slot);
}

std::unique_ptr<BlockReceiver> shared_memory_receiver(const TransferSlots& slots) {
  return std::make_unique<SharedMemoryReceiver>(slots);
}

}  // namespace octavo
