#include "transfer/peers/messages.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <cstring>
#include <limits>
#include <utility>

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::uint32_t kFrameBytesMax = 64 << 10;

std::string hex(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return digits;
}

std::string hex(Hash128 hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

template <class... Each>
struct Overloaded : Each... {
  using Each::operator()...;
};

json::object object_of(const TransferMessage& message) {
  return std::visit(
      Overloaded{
          [](const Pull& m) {
            return json::object{{"kind", "pull"},
                                {"version", m.version},
                                {"fingerprint", m.format.fingerprint},
                                {"dtype", m.format.dtype},
                                {"block_size", m.format.block_size},
                                {"block_bytes", m.format.bytes},
                                {"windows", json::value_from(m.format.windows)},
                                {"state_pieces", m.format.state_pieces},
                                {"engine_id", m.engine_id},
                                {"request_id", m.request_id},
                                {"blocks", m.blocks},
                                {"key", hex(m.key)},
                                {"process", m.segment.process},
                                {"descriptor", m.segment.descriptor},
                                {"slot_bytes", m.segment.slot_bytes},
                                {"secret", m.segment.secret},
                                {"ucx", hex(m.ucx)}};
          },
          [](const Ready& m) {
            return json::object{{"kind", "ready"},
                                {"blocks", m.blocks},
                                {"shared_memory", m.shared_memory},
                                {"layout", m.layout},
                                {"ucx", m.ucx}};
          },
          [](const Get& m) {
            return json::object{{"kind", "get"},
                                {"first", m.first},
                                {"count", m.count},
                                {"slot", m.slot},
                                {"way", kBlockWayNames[static_cast<std::size_t>(m.way)]}};
          },
          [](const Piece& m) {
            return json::object{{"kind", "piece"}, {"first", m.first}, {"count", m.count}};
          },
          [](const Done& m) { return json::object{{"kind", "done"}, {"request_id", m.request_id}}; },
          [](const Keep& m) { return json::object{{"kind", "keep"}, {"request_id", m.request_id}}; },
          [](const Refused& m) {
            return json::object{{"kind", "refused"},
                                {"reason", kKvTransferFailureNames[static_cast<std::size_t>(m.reason)]},
                                {"message", m.message}};
          }},
      message);
}

// Reads fields; once one is missing or of another type, good() is false.
class Reader {
 public:
  explicit Reader(const json::object& object) : object_(object) {}
  bool good() const { return good_; }

  std::string text(std::string_view name) {
    const json::value* value = object_.if_contains(name);
    good_ = good_ && value != nullptr && value->is_string();
    return good_ ? std::string(value->get_string()) : "";
  }
  std::int64_t integer(std::string_view name, std::int64_t max = std::numeric_limits<std::int64_t>::max()) {
    const json::value* value = object_.if_contains(name);
    good_ = good_ && value != nullptr && value->is_int64() && value->get_int64() >= 0 &&
            value->get_int64() <= max;
    return good_ ? value->get_int64() : 0;
  }
  std::vector<int> counts(std::string_view name) {
    const json::value* value = object_.if_contains(name);
    good_ = good_ && value != nullptr && value->is_array();
    std::vector<int> all;
    if (!good_) return all;
    for (const json::value& each : value->get_array()) {
      good_ = good_ && each.is_int64() && each.get_int64() >= 0 &&
              each.get_int64() <= std::numeric_limits<int>::max();
      if (good_) all.push_back(static_cast<int>(each.get_int64()));
    }
    return all;
  }
  int count(std::string_view name) {
    return static_cast<int>(integer(name, std::numeric_limits<int>::max()));
  }
  bool boolean(std::string_view name) {
    const json::value* value = object_.if_contains(name);
    good_ = good_ && value != nullptr && value->is_bool();
    return good_ && value->get_bool();
  }
  Hash128 hash(std::string_view name) {
    const std::string digits = text(name);
    good_ = good_ && digits.size() == 32 && digits.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!good_) return {};
    return {.low = std::stoull(digits.substr(16), nullptr, 16),
            .high = std::stoull(digits.substr(0, 16), nullptr, 16)};
  }
  std::string bytes(std::string_view name) {
    const std::string digits = text(name);
    good_ =
        good_ && digits.size() % 2 == 0 && digits.find_first_not_of("0123456789abcdef") == std::string::npos;
    std::string out;
    for (std::size_t i = 0; good_ && i < digits.size(); i += 2)
      out.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    return out;
  }
  template <class Enum>
  Enum one_of(std::string_view name, std::span<const std::string_view> names) {
    const auto found = std::ranges::find(names, text(name));
    good_ = good_ && found != names.end();
    return good_ ? static_cast<Enum>(found - names.begin()) : Enum{};
  }

 private:
  const json::object& object_;
  bool good_ = true;
};

TransferMessage read(Reader& r, std::string_view kind) {
  if (kind == "pull")
    return Pull{.version = r.count("version"),
                .format = {.fingerprint = r.text("fingerprint"),
                           .dtype = r.text("dtype"),
                           .block_size = r.count("block_size"),
                           .bytes = r.integer("block_bytes"),
                           .windows = r.counts("windows"),
                           .state_pieces = r.count("state_pieces")},
                .engine_id = r.text("engine_id"),
                .request_id = r.text("request_id"),
                .blocks = r.count("blocks"),
                .key = r.hash("key"),
                .segment = {.process = r.integer("process"),
                            .descriptor = r.integer("descriptor"),
                            .slot_bytes = r.integer("slot_bytes"),
                            .secret = r.text("secret")},
                .ucx = r.bytes("ucx")};
  if (kind == "ready")
    return Ready{.blocks = r.count("blocks"),
                 .shared_memory = r.boolean("shared_memory"),
                 .layout = r.text("layout"),
                 .ucx = r.boolean("ucx")};
  if (kind == "get")
    return Get{.first = r.count("first"),
               .count = r.count("count"),
               .slot = r.count("slot"),
               .way = r.one_of<BlockWay>("way", kBlockWayNames)};
  if (kind == "piece") return Piece{.first = r.count("first"), .count = r.count("count")};
  if (kind == "done") return Done{r.text("request_id")};
  if (kind == "keep") return Keep{r.text("request_id")};
  return Refused{.reason = r.one_of<KvTransferFailure>("reason", kKvTransferFailureNames),
                 .message = r.text("message")};
}

}  // namespace

Result<> send_message(PeerSocket& socket, const TransferMessage& message) {
  const std::string text = json::serialize(object_of(message));
  const auto size = static_cast<std::uint32_t>(text.size());
  std::string frame(sizeof size, '\0');
  std::memcpy(frame.data(), &size, sizeof size);
  return socket.send(std::as_bytes(std::span(frame += text)));
}

Result<TransferMessage> receive_message(PeerSocket& socket) {
  std::uint32_t size = 0;
  TRY_VOID(socket.receive(std::as_writable_bytes(std::span(&size, 1))));
  if (size > kFrameBytesMax) return failure(ErrorCode::corrupt, "a message of {} bytes", size);
  std::string frame(size, '\0');
  TRY_VOID(socket.receive(std::as_writable_bytes(std::span(frame))));
  json::error_code not_json;
  const json::value value = json::parse(frame, not_json);
  if (not_json || !value.is_object()) return failure(ErrorCode::corrupt, "a message that is no JSON object");
  Reader reader(value.get_object());
  const std::string kind = reader.text("kind");
  TransferMessage message = read(reader, kind);
  if (!reader.good())
    return failure(ErrorCode::corrupt, "a message that this version does not know: {:.32}", kind);
  return message;
}

}  // namespace octavo
