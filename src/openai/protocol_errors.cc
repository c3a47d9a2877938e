#include "openai/protocol_errors.h"

#include "openai/anthropic_errors.h"
#include "openai/cohere_errors.h"
#include "openai/errors.h"
#include "openai/ollama_errors.h"

namespace octavo::openai {

http::Response error_response_in(Protocol protocol, const Error& error) {
  switch (protocol) {
    case Protocol::anthropic:
      return anthropic::error_response(error);
    case Protocol::ollama:
      return ollama::error_response(error);
    case Protocol::cohere:
      return cohere::error_response(error);
    default:
      return error_response(error);
  }
}

std::string error_json_in(Protocol protocol, int status, std::string_view message, std::string_view param) {
  switch (protocol) {
    case Protocol::anthropic:
      return anthropic::error_json(status, message);
    case Protocol::ollama:
      return ollama::error_json(message);
    case Protocol::cohere:
      return cohere::error_json(message);
    default:
      return error_json(status, message, param);
  }
}

}  // namespace octavo::openai
