#include "fleet/pick/choice_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "ext_proc.pb.h"

namespace octavo::fleet {
namespace {

// bytes of a body in one response; Envoy recommends at most 64 KiB
constexpr std::size_t kPieceBytes = 62'000;

constexpr std::string_view kDestination = "x-gateway-destination-endpoint";
constexpr std::string_view kScores = "x-gateway-destination-endpoint-scores";
constexpr std::string_view kLoadBalancer = "envoy.lb";
// Headers for the sidecar at the endpoint. Values from the client are removed.
constexpr std::string_view kPrefiller = "x-prefiller-host-port";
constexpr std::string_view kEncoders = "x-encoder-hosts-ports";
constexpr std::string_view kKvSource = "x-kv-cache-source-host-port";
constexpr std::string_view kRank = "x-data-parallel-host-port";
constexpr std::string_view kEngineRank = "x-data-parallel-rank";  // vLLM reads it

std::string without_ranks(std::string names) {
  for (std::size_t at = names.find('@'); at != std::string::npos; at = names.find('@', at))
    names.erase(at, std::min(names.find(',', at), names.size()) - at);
  return names;
}

// Returns the addresses of the picked endpoints, without duplicates. `primary_port` is the port that the
// gateway sends the requests for all ranks of a pod to; 0: each rank's own port.
std::string destinations(const Choice& choice, int primary_port) {
  std::vector<std::string> addresses;
  for (const Choice::Picked& picked : choice.picked) {
    std::string address = primary_port > 0 ? fmt::format("{}:{}", ip_of(picked.name), primary_port)
                                           : std::string(address_of(picked.name));
    if (std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(std::move(address));
  }
  return fmt::format("{}", fmt::join(addresses, ","));
}

}  // namespace

std::string_view split_of(const Choice& choice) {
  if (choice.encoders.empty()) return choice.prefiller.empty() ? "decode-only" : "prefill-decode";
  return choice.prefiller.empty() ? "encode-decode" : "encode-prefill-decode";
}

void set_header(ext_proc::HeaderMutation& mutation, std::string_view name, std::string_view value) {
  auto& option = *mutation.add_set_headers();
  option.mutable_header()->set_key(std::string(name));
  option.mutable_header()->set_raw_value(std::string(value));
  option.set_append_action(ext_proc::OVERWRITE_IF_EXISTS_OR_ADD);
}

std::string random_uuid(std::uint64_t high, std::uint64_t low) {
  high = (high & ~0xF000ULL) | 0x4000;                     // UUID version 4
  low = (low & ~(3ULL << 62)) | (std::uint64_t{2} << 62);  // UUID variant 1
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xFFFF, high & 0xFFFF,
                     low >> 48, low & 0xFFFFFFFFFFFF);
}

void write_choice(const ChoiceAnswer& answer_of, ext_proc::ProcessingResponse& answer) {
  const Choice& choice = answer_of.choice;
  const http::Request& request = answer_of.request;
  ext_proc::CommonResponse& common = answer_of.buffered
                                         ? *answer.mutable_request_body()->mutable_response()
                                         : *answer.mutable_request_headers()->mutable_response();
  common.set_clear_route_cache(true);
  ext_proc::HeaderMutation& headers = *common.mutable_header_mutation();
  const std::string names = destinations(choice, answer_of.primary_port);
  set_header(headers, kDestination, names);
  for (const auto& [name, value] : {std::pair(kPrefiller, without_ranks(choice.prefiller)),
                                    {kEncoders, without_ranks(choice.encoders)},
                                    {kKvSource, without_ranks(choice.kv_source)},
                                    {kRank, answer_of.primary_port > 0 ? choice.picked.front().name : ""}}) {
    if (!value.empty())
      set_header(headers, name, value);
    else if (request.headers.find(name))
      headers.add_remove_headers(std::string(name));
  }
  if (choice.endpoint->shares_port && !request.headers.find(kEngineRank))
    set_header(headers, kEngineRank, std::to_string(choice.endpoint->rank));
  if (answer_of.buffered && answer_of.changes_body) common.mutable_body_mutation()->set_body(request.body);
  if (answer_of.sets_length) set_header(headers, "content-length", fmt::format("{}", request.body.size()));
  if (answer_of.expands_body) headers.add_remove_headers("content-encoding");
  if (!answer_of.traceparent.empty()) set_header(headers, "traceparent", answer_of.traceparent);
  if (!answer_of.request_id.empty()) set_header(headers, "x-request-id", answer_of.request_id);

  auto& fields = *(*answer.mutable_dynamic_metadata()->mutable_fields())[std::string(kLoadBalancer)]
                      .mutable_struct_value()
                      ->mutable_fields();
  fields[std::string(kDestination)].set_string_value(names);
  if (!answer_of.emit_scores) return;
  auto& scores = *fields[std::string(kScores)].mutable_struct_value()->mutable_fields();
  for (const Choice::Picked& endpoint : choice.picked) scores[endpoint.name].set_number_value(endpoint.score);
}

void add_request_body(std::string_view body, bool has_trailers,
                      std::vector<ext_proc::ProcessingResponse>& answers) {
  do {
    auto& streamed = *answers.emplace_back()
                          .mutable_request_body()
                          ->mutable_response()
                          ->mutable_body_mutation()
                          ->mutable_streamed_response();
    const std::string_view piece = body.substr(0, kPieceBytes);
    body.remove_prefix(piece.size());
    streamed.set_body(std::string(piece));
    streamed.set_end_of_stream(body.empty() && !has_trailers);
  } while (!body.empty());
}

}  // namespace octavo::fleet
