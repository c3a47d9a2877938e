// Fuzz test: sends arbitrary bodies to all routes of a whole server with FakeEngine. No response may have the
// status 500, and the server must keep running. An input is {"route": PATH, "body": BODY}.
#include <boost/json/serialize.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "fuzz/json_mutator.h"
#include "http/client.h"
#include "openai/request_fields.h"
#include "serve/api_server.h"
#include "serve/fake_engine.h"
#include "serve/test_tokenizer.h"

namespace {

using namespace octavo;

const fuzz::JsonMutator& mutator() {
  static const fuzz::JsonMutator m({
      R"({"route": "/inference/v1/generate", "body": {"token_ids": [1, 2, 3], "model": "m", "request_id": "r",
          "sampling_params": {"n": 2, "temperature": 1, "max_tokens": 5, "stop": ["x"], "logprobs": 1,
          "detokenize": false, "output_kind": 2}, "stream": false, "priority": 0, "cache_salt": "s",
          "kv_transfer_params": null, "features": null}})",
      R"({"route": "/tokenize", "body": {"prompt": "ab", "add_special_tokens": true, "return_token_strs": true}})",
      R"({"route": "/tokenize", "body": {"messages": [{"role": "user", "content": "a"}], "add_generation_prompt": true}})",
      R"({"route": "/detokenize", "body": {"tokens": [97, 98, 256], "model": "m"}})",
      R"({"route": "/v1/completions", "body": {"prompt": "ab", "max_tokens": 5, "use_beam_search": true, "n": 2,
          "length_penalty": 0.5, "logprobs": 1, "vllm_xargs": {"a": 1}, "echo": true}})",
      R"({"route": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 5,
          "use_beam_search": true, "n": 2, "logprobs": true, "top_logprobs": 1, "stream": true}})",
      R"({"route": "/v1/completions/render", "body": {"prompt": ["a", "b"], "max_tokens": 5}})",
      R"({"route": "/v1/responses", "body": {"input": "a", "max_output_tokens": 5}})",
      R"({"route": "/v1/messages", "body": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 5}})",
      R"({"route": "/v1/messages/count_tokens", "body": {"messages": [{"role": "user", "content": "a"}]}})",
      R"({"route": "/v1/embeddings", "body": {"input": "a"}})",
      R"({"route": "/rerank", "body": {"query": "a", "documents": ["b"]}})",
  });
  return m;
}

class Server {
 public:
  Server() {
    ServeOptions options;
    options.rules.model_names = {"m"};
    options.rules.limits.vocab_size = kTestVocabulary;
    options.rules.max_model_len = 200;
    options.eos_ids = {kEndToken};
    server_ = ApiServer::start({}, {}).value();
    server_->open(std::make_shared<Service>(engine_, tokenizer_, &template_, nullptr, std::move(options)));
  }

  int status_of(const std::string& path, const std::string& body) {
    for (int tries = 0; tries < 2; ++tries) {
      if (!client_) client_ = http::Client::connect({.port = server_->port(), .timeout_ms = 20'000}).value();
      if (const auto response = client_->post_json(path, body)) return response->status;
      client_.reset();  // the server has closed the connection after a refusal
    }
    return 0;
  }

 private:
  FakeEngine engine_{[](const Request&, int) {
    std::vector<TokenId> tokens = bytes_of("ab");
    tokens.push_back(kEndToken);
    return Script{.tokens = std::move(tokens)};
  }};
  Tokenizer tokenizer_ = byte_tokenizer();
  ChatTemplate template_ =
      ChatTemplate::compile("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", {}).value();
  std::unique_ptr<ApiServer> server_;
  std::optional<http::Client> client_;
};

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return mutator()(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Server server;
  const auto input = openai::parse_body({reinterpret_cast<const char*>(data), size});
  if (!input) return 0;
  const auto* route = input->if_contains("route");
  const auto* body = input->if_contains("body");
  if (!route || !route->is_string() || !body) return 0;
  const std::string path(route->get_string());
  if (!path.starts_with('/') || path.find_first_of(std::string_view(" \r\n\0", 4)) != std::string::npos)
    return 0;
  const int status = server.status_of(path, boost::json::serialize(*body));
  CHECK(status >= 200 && status != 500 && status < 505);
  return 0;
}
