#include "fleet/peers/load_message.h"

#include <msgpuck.h>

#include <array>

#include "base/msgpack_reader.h"
#include "fleet/view/fleet_view.h"

namespace octavo::fleet {
namespace {

constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kNameBytesMax = 512;
constexpr std::int64_t kRequestsMax = 1 << 20;
constexpr std::int64_t kTokensMax = std::int64_t{1} << 48;

template <class Encode>
void append(std::string& out, Encode encode) {
  std::array<char, 16> bytes;
  const char* const end = encode(bytes.data());
  out.append(bytes.data(), static_cast<std::size_t>(end - bytes.data()));
}

void write_array(std::string& out, std::size_t items) {
  append(out, [&](char* to) { return mp_encode_array(to, static_cast<std::uint32_t>(items)); });
}

void write_number(std::string& out, std::uint64_t value) {
  append(out, [&](char* to) { return mp_encode_uint(to, value); });
}

void write_text(std::string& out, std::string_view text) {
  append(out, [&](char* to) { return mp_encode_strl(to, static_cast<std::uint32_t>(text.size())); });
  out += text;
}

std::optional<std::int64_t> number_up_to(MsgpackReader& reader, std::int64_t max) {
  const auto value = reader.integer();
  return value && *value >= 0 && *value <= max ? value : std::nullopt;
}

std::optional<WorkerLoad> read_worker(MsgpackReader& reader) {
  if (reader.array() != 5) return std::nullopt;
  const auto name = reader.text();
  if (!name || name->size() > kNameBytesMax) return std::nullopt;
  const auto requests = number_up_to(reader, kRequestsMax);
  const auto prefill = number_up_to(reader, kTokensMax);
  const auto context = number_up_to(reader, kTokensMax);
  const auto own = number_up_to(reader, kTokensMax);
  if (!requests || !prefill || !context || !own) return std::nullopt;
  return WorkerLoad{std::string(*name), {static_cast<int>(*requests), *prefill, *context, *own}};
}

}  // namespace

std::string write_load_message(const LoadMessage& message) {
  std::string out;
  write_array(out, 4);
  write_number(out, kVersion);
  write_number(out, message.sender);
  write_number(out, message.all ? 1 : 0);
  write_array(out, message.workers.size());
  for (const auto& [worker, load] : message.workers) {
    write_array(out, 5);
    write_text(out, worker);
    for (const std::int64_t value :
         {std::int64_t{load.requests}, load.prefill_tokens, load.context_tokens, load.own_tokens})
      write_number(out, static_cast<std::uint64_t>(value));
  }
  return out;
}

Result<LoadMessage> read_load_message(std::string_view text) {
  const auto corrupt = [](std::string_view what) { return failure(ErrorCode::corrupt, "{}", what); };
  MsgpackReader reader(text);
  if (reader.array() != 4 || reader.bits() != kVersion) return corrupt("is not a message of version 1");
  const auto sender = reader.bits();
  const auto all = number_up_to(reader, 1);
  const auto count = reader.array();
  if (!sender || !all || !count || *count > kEndpointsMax)
    return corrupt("has no sender or no list of workers");
  LoadMessage message{.sender = *sender, .all = *all == 1};
  for (std::uint32_t i = 0; i < *count; ++i) {
    auto worker = read_worker(reader);
    if (!worker) return corrupt("has no load for a worker");
    message.workers.push_back(*std::move(worker));
  }
  return message;
}

}  // namespace octavo::fleet
