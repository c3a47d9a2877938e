#include "fleet/pick/grpc_body.h"

#include <algorithm>
#include <array>
#include <limits>

#include "vllm_engine.pb.h"

namespace octavo::fleet {
namespace {

constexpr std::size_t kPrefixBytes = 5;  // compression flag (1 byte), and length (4 bytes) in network order

Result<std::string_view> message_of(std::string_view body) {
  if (body.size() < kPrefixBytes) return invalid("", "the gRPC message has no prefix of 5 bytes");
  if (body[0] != 0) return invalid("", "the gRPC message is compressed: send it uncompressed");
  std::size_t length = 0;
  for (const char byte : body.substr(1, 4)) length = length << 8 | static_cast<unsigned char>(byte);
  body.remove_prefix(kPrefixBytes);
  if (body.size() == length) return body;
  return invalid("", "the gRPC message has {} bytes, and its prefix says {}", body.size(), length);
}

}  // namespace

bool is_vllm_grpc(std::string_view path) {
  constexpr std::array<std::string_view, 2> kPaths{"/vllm.grpc.engine.VllmEngine/Generate",
                                                   "/vllm.grpc.engine.VllmEngine/Embed"};
  return std::ranges::find(kPaths, path) != kPaths.end();
}

Result<> read_vllm_grpc(std::string_view body, RouteRequest& route) {
  TRY(const std::string_view bytes, message_of(body));
  vllm::GenerateRequest request;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return invalid("", "the gRPC message is not a GenerateRequest");
  route.body_error.clear();
  route.unreadable = false;
  route.stream = request.stream();
  route.output_tokens_max = static_cast<int>(
      std::min<std::uint32_t>(request.sampling_params().max_tokens(), std::numeric_limits<int>::max()));
  route.text = request.text();
  route.tokens_are_exact = request.has_tokenized();
  const auto& ids = request.tokenized().input_ids();
  route.tokens.assign(ids.begin(), ids.end());
  if (!route.tokens_are_exact) route.tokens = estimated_tokens(route.text);
  return {};
}

}  // namespace octavo::fleet
