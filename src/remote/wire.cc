#include "remote/wire.h"

#include <cstring>

#include "base/pack.h"

namespace octavo {

// Sends only the counts, because both ends know the bounds of the histogram.
template <>
struct Packed<Histogram> {
  using As = std::pair<std::vector<std::int64_t>, double>;
  static As out(const Histogram& histogram) {
    return {{histogram.counts().begin(), histogram.counts().end()}, histogram.sum()};
  }
  static bool in(const As& as, Histogram& histogram) { return histogram.assign(as.first, as.second); }
};

namespace remote {
namespace {

template <class Variant>
Result<Variant> read_frame(std::string_view frame) {
  Unpacker unpacker(std::as_bytes(std::span(frame)));
  Result<Variant> message;
  unpacker.get(*message);
  if (!unpacker.complete())
    return failure(ErrorCode::corrupt, "received a message that this version does not know");
  return message;
}

}  // namespace

std::uint64_t wire_version() { return layout_hash<ToEngine, FromEngine>(); }

template <class Message>
void append_frame(std::string& out, const Message& message) {
  constexpr std::uint8_t to = kind_in<Message>(static_cast<const ToEngine*>(nullptr)),
                         from = kind_in<Message>(static_cast<const FromEngine*>(nullptr));
  const std::size_t begin = out.size();
  out.append(sizeof(std::uint32_t), '\0');
  Packer packer(out);
  packer.put(to < std::variant_size_v<ToEngine> ? to : from);
  packer.put(message);
  const auto size = static_cast<std::uint32_t>(out.size() - begin - sizeof(std::uint32_t));
  std::memcpy(out.data() + begin, &size, sizeof size);
}

template void append_frame(std::string&, const Hello&);
template void append_frame(std::string&, const Submit&);
template void append_frame(std::string&, const Abort&);
template void append_frame(std::string&, const ResetPrefixCache&);
template void append_frame(std::string&, const LookAtPrefixes&);
template void append_frame(std::string&, const LogState&);
template void append_frame(std::string&, const CommandSessions&);
template void append_frame(std::string&, const ChangeAdapter&);
template void append_frame(std::string&, const Sleep&);
template void append_frame(std::string&, const WakeUp&);
template void append_frame(std::string&, const Pause&);
template void append_frame(std::string&, const Resume&);
template void append_frame(std::string&, const AdapterChanged&);
template void append_frame(std::string&, const Slept&);
template void append_frame(std::string&, const Woken&);
template void append_frame(std::string&, const Paused&);
template void append_frame(std::string&, const SessionsChanged&);
template void append_frame(std::string&, const Loading&);
template void append_frame(std::string&, const Ready&);
template void append_frame(std::string&, const Failed&);
template void append_frame(std::string&, const Output&);
template void append_frame(std::string&, const EngineStats&);

Result<ToEngine> read_to_engine(std::string_view frame) { return read_frame<ToEngine>(frame); }
Result<FromEngine> read_from_engine(std::string_view frame) { return read_frame<FromEngine>(frame); }

}  // namespace remote
}  // namespace octavo
