#include "transfer/peers/nixl/vllm_handshake.h"

#include <msgpuck.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <zmq.hpp>

#include "base/clock.h"
#include "base/msgpack_reader.h"
#include "base/quoted_text.h"
#include "http/url.h"

namespace octavo {
namespace {

constexpr std::string_view kGetMetadata = "get_meta_msg";
constexpr std::uint32_t kRegionsMax = 4096;
constexpr std::int64_t kNumberMax = std::int64_t{1} << 40;
constexpr std::chrono::milliseconds kStopTick{100};

std::unexpected<Error> bad_field(std::string_view name) {
  return failure(ErrorCode::corrupt, "the handshake of the other engine has an invalid field {}",
                 quoted_text(name));
}

// Reads the fields of a map. Each reader returns false if its value is invalid. Other fields are skipped.
using FieldReaders = std::map<std::string_view, std::function<bool(MsgpackReader&)>>;
Result<> read_map(std::string_view bytes, const FieldReaders& readers) {
  MsgpackReader in(bytes);
  const auto fields = in.map();
  if (!fields) return failure(ErrorCode::corrupt, "the handshake of the other engine is not a msgpack map");
  std::size_t found = 0;
  for (std::uint32_t i = 0; i < *fields; ++i) {
    const auto name = in.text();
    if (!name) return failure(ErrorCode::corrupt, "the handshake of the other engine ends early");
    const auto reader = readers.find(*name);
    if (reader == readers.end() ? !in.skip() : !reader->second(in)) return bad_field(*name);
    if (reader != readers.end()) ++found;
  }
  if (found == readers.size()) return {};
  return failure(ErrorCode::corrupt,
                 "the handshake of the other engine has {} of {} fields: vLLM 0.32 is needed", found,
                 readers.size());
}

bool read_number(MsgpackReader& in, std::int64_t least, std::int64_t& out) {
  const auto value = in.integer();
  if (!value || *value < least || *value > kNumberMax) return false;
  out = *value;
  return true;
}

bool read_string(MsgpackReader& in, std::string& out) {
  const auto value = in.text();
  if (value) out = *value;
  return value.has_value();
}

// Reads a list with one value for each region.
template <class Read>
bool read_regions(MsgpackReader& in, std::vector<VllmRegion>& regions, Read&& read) {
  const auto count = in.array();
  if (!count || *count == 0 || *count > kRegionsMax) return false;
  if (regions.empty()) regions.resize(*count);
  return regions.size() == *count && std::ranges::all_of(regions, read);
}

// Reads the kinds of memory, which must all be equal. nil: all memory is DRAM.
bool read_memory(MsgpackReader& in, VllmAgent& out) {
  if (in.nil()) return true;
  std::string kind;
  const auto read = [&](const VllmRegion&) {
    if (!read_string(in, kind)) return false;
    const bool first = out.memory.empty();
    if (first) out.memory = kind;
    return kind == out.memory && (kind == "DRAM" || kind == "VRAM");
  };
  out.memory.clear();
  return read_regions(in, out.regions, read);
}

Result<> read_agent(std::string_view bytes, VllmAgent& out) {
  std::int64_t decode_ranks = 1, prefill_ranks = 1;
  const auto number = [](std::int64_t& to, std::int64_t least) {
    return [&to, least](MsgpackReader& in) { return read_number(in, least, to); };
  };
  const auto text = [](std::string& to) { return [&to](MsgpackReader& in) { return read_string(in, to); }; };
  const auto numbers = [&](std::int64_t VllmRegion::* to) {
    return [&out, to](MsgpackReader& in) {
      return read_regions(in, out.regions, [&](VllmRegion& each) { return read_number(in, 1, each.*to); });
    };
  };
  const auto address = [](MsgpackReader& in, VllmRegion& each) {
    const auto value = in.bits();
    if (value) each.address = *value;
    return value.has_value();
  };
  const FieldReaders readers{
      {"engine_id", text(out.engine_id)},
      {"attn_backend_name", text(out.backend)},
      {"kv_cache_layout", text(out.layout)},
      {"device_id", number(out.device, 0)},
      {"block_size", number(out.block_size, 1)},
      {"physical_blocks_per_logical_kv_block", number(out.blocks_of_an_id, 1)},
      {"dcp_size", number(decode_ranks, 1)},
      {"pcp_size", number(prefill_ranks, 1)},
      {"agent_metadata",
       [&](MsgpackReader& in) {
         const auto value = in.bytes();
         if (value) out.metadata = *value;
         return value && !value->empty();
       }},
      {"kv_caches_base_addr",
       [&](MsgpackReader& in) {
         return read_regions(in, out.regions, [&](VllmRegion& each) { return address(in, each); });
       }},
      {"block_lens", numbers(&VllmRegion::block_bytes)},
      {"block_strides", numbers(&VllmRegion::stride)},
      {"region_num_blocks", numbers(&VllmRegion::blocks)},
      {"region_mem_types", [&](MsgpackReader& in) { return read_memory(in, out); }},
  };
  TRY_VOID(read_map(bytes, readers));
  if (decode_ranks > kRegionsMax || prefill_ranks > kRegionsMax) return bad_field("dcp_size");
  out.context_ranks = decode_ranks * prefill_ranks;
  return {};
}

}  // namespace

std::string vllm_handshake_request() {
  std::array<char, 64> bytes;
  char* end = mp_encode_array(bytes.data(), 3);
  end = mp_encode_bin(end, kGetMetadata.data(), static_cast<std::uint32_t>(kGetMetadata.size()));
  end = mp_encode_uint(end, 0);
  end = mp_encode_uint(end, 0);
  return {bytes.data(), end};
}

Result<VllmAgent> parse_vllm_handshake(std::string_view answer) {
  std::string_view agent_bytes;
  const FieldReaders readers{{"agent_metadata_bytes", [&](MsgpackReader& in) {
                                const auto value = in.bytes();
                                if (value) agent_bytes = *value;
                                return value.has_value();
                              }}};
  TRY_VOID(read_map(answer, readers));
  VllmAgent agent;
  TRY_VOID(read_agent(agent_bytes, agent));
  return agent;
}

Result<VllmAgent> ask_vllm(const std::string& host, int port, const PeerTimes& times,
                           const std::atomic<bool>& stop) {
  const std::string address = http::host_and_port(host, port);
  try {
    zmq::context_t context(1);
    zmq::socket_t socket(context, zmq::socket_type::req);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::ipv6, true);
    socket.set(zmq::sockopt::maxmsgsize, kVllmMessageBytesMax);
    socket.connect("tcp://" + address);
    socket.send(zmq::buffer(vllm_handshake_request()), zmq::send_flags::none);
    const std::int64_t end_us = now_us() + std::int64_t{times.silence} * 1000;
    zmq::pollitem_t readable{socket.handle(), 0, ZMQ_POLLIN, 0};
    while (zmq::poll(&readable, 1, kStopTick) == 0) {
      if (stop) return failure(ErrorCode::unavailable, "this engine stops");
      if (now_us() > end_us)
        return failure(ErrorCode::unavailable,
                       "{}: no answer to the handshake of vLLM's NixlConnector in {} ms", address,
                       times.silence);
    }
    zmq::message_t answer;
    if (!socket.recv(answer, zmq::recv_flags::dontwait))
      return failure(ErrorCode::unavailable, "{}: the answer to the handshake is incomplete", address);
    return parse_vllm_handshake(answer.to_string_view());
  } catch (const zmq::error_t& error) {
    return failure(ErrorCode::unavailable, "{}: {}", address, error.what());
  }
}

}  // namespace octavo
