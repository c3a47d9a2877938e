#include "fleet/pick/grpc_body.h"

#include <algorithm>
#include <limits>

#include "vllm_engine.pb.h"

namespace octavo::fleet {
namespace {

constexpr std::size_t kPrefixBytes = 5;  // compression flag (1 byte), and length (4 bytes) in network order

constexpr std::string_view kGenerate = "/vllm.grpc.engine.VllmEngine/Generate";
constexpr std::string_view kEmbed = "/vllm.grpc.engine.VllmEngine/Embed";

constexpr std::size_t kCountedBytesMax = 4 << 20;  // larger messages are not counted
constexpr std::size_t kOutputsMax = 1024;          // maximum number of outputs of one request

std::size_t length_of(std::string_view prefix) {
  std::size_t length = 0;
  for (const char byte : prefix.substr(1, 4)) length = length << 8 | static_cast<unsigned char>(byte);
  return length;
}

Result<std::string_view> message_of(std::string_view body) {
  if (body.size() < kPrefixBytes) return invalid("", "the gRPC message has no prefix of 5 bytes");
  if (body[0] != 0) return invalid("", "the gRPC message is compressed: send it uncompressed");
  const std::size_t length = length_of(body);
  body.remove_prefix(kPrefixBytes);
  if (body.size() == length) return body;
  return invalid("", "the gRPC message has {} bytes, and its prefix says {}", body.size(), length);
}

}  // namespace

bool is_vllm_grpc(std::string_view path) { return path == kGenerate || path == kEmbed; }

Result<> read_vllm_grpc(std::string_view body, RouteRequest& route) {
  TRY(const std::string_view bytes, message_of(body));
  vllm::GenerateRequest request;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return invalid("", "the gRPC message is not a GenerateRequest");
  route.body.error.clear();
  route.body.unreadable = false;
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

GrpcAnswer::GrpcAnswer(std::string_view path) : embeds_(path == kEmbed) {}

std::int64_t GrpcAnswer::read(std::string_view bytes) {
  std::int64_t tokens = 0;
  while (!bytes.empty()) {
    if (skipped_ > 0) {
      const std::size_t left_out = std::min<std::uint64_t>(skipped_, bytes.size());
      bytes.remove_prefix(left_out);
      skipped_ -= left_out;
      continue;
    }
    const bool has_prefix = unread_.size() >= kPrefixBytes;
    const std::size_t whole = kPrefixBytes + (has_prefix ? length_of(unread_) : 0);
    const std::string_view taken = bytes.substr(0, whole - unread_.size());
    unread_ += taken;
    bytes.remove_prefix(taken.size());
    if (unread_.size() < whole) break;
    const std::size_t length = length_of(unread_);
    if (unread_[0] != 0 || length > kCountedBytesMax)
      skipped_ = length;
    else if (unread_.size() < kPrefixBytes + length)
      continue;
    else
      tokens += read_message(std::string_view(unread_).substr(kPrefixBytes));
    unread_.clear();
  }
  return tokens;
}

std::int64_t GrpcAnswer::read_message(std::string_view bytes) {
  if (!embeds_) return read_generated(bytes);
  vllm::EmbedResponse embedded;
  if (embedded.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) && embedded.prompt_tokens() > 0)
    prompt_tokens_ = embedded.prompt_tokens();
  return 0;
}

std::int64_t GrpcAnswer::read_generated(std::string_view bytes) {
  vllm::GenerateResponse answer;
  if (!answer.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return 0;
  const auto prompt = [&](const auto& part) {
    if (part.prompt_tokens() == 0) return;
    prompt_tokens_ = part.prompt_tokens();
    cached_tokens_ = part.cached_tokens();
  };
  std::int64_t tokens = 0;
  if (answer.has_chunk()) {
    prompt(answer.chunk());
    tokens = answer.chunk().token_ids_size();
    if (streamed_.size() < kOutputsMax) streamed_.insert(answer.chunk().index());
  } else if (answer.has_complete()) {
    prompt(answer.complete());
    if (!streamed_.contains(answer.complete().index())) tokens = answer.complete().output_ids_size();
  }
  output_tokens_ += tokens;
  return tokens;
}

std::optional<boost::json::object> GrpcAnswer::usage() const {
  if (prompt_tokens_ < 0) return std::nullopt;
  return boost::json::object{
      {"prompt_tokens", prompt_tokens_},
      {"completion_tokens", output_tokens_},
      {"total_tokens", prompt_tokens_ + output_tokens_},
      {"prompt_tokens_details", boost::json::object{{"cached_tokens", cached_tokens_}}}};
}

}  // namespace octavo::fleet
