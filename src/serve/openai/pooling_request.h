// The bodies of the routes that read texts: OpenAI's /v1/embeddings, vLLM's /pooling, /classify and /score,
// Cohere's /v2/embed, and Jina's and Cohere's /rerank.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "request/pooling.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/completion_request.h"

namespace octavo::openai {

// Fields of all pooling requests.
struct PoolingFields {
  std::string request_id;
  std::string adapter;  // the LoRA adapter that reads the texts; empty without an adapter
  std::int64_t priority = 0;
  std::optional<int> truncate;  // tokens that are kept of a text; -1: the model's maximum
  bool keep_last = false;       // the last ones, otherwise the first ones
  bool add_special_tokens = true;
  // Vectors are normalised, scores become probabilities, as the model says. Nothing: as the server says.
  std::optional<bool> activated;
  std::vector<std::string> unknown_fields;
};

struct EmbeddingRequest {
  PoolingFields fields;
  std::vector<TextOrTokens> input;
  std::optional<ChatPrompt> chat;  // in place of input: one text, made by the chat template
  bool base64 = false;
  std::optional<int> dimensions;  // the first ones of a vector
  std::optional<Task> task;       // nothing: what the server does
  std::string input_type;         // Jina's task: what the texts are, "retrieval.query" ..
};

// Cohere's request: each text's vector in several formats.
struct EmbedByTypeRequest {
  enum class Type : std::uint8_t { float32, base64, binary, ubinary };  // the last two: a bit a number

  PoolingFields fields;
  std::vector<std::string> texts;
  std::vector<Type> types;
  std::optional<int> dimensions;
  std::optional<int> tokens_max;  // a longer text is an error
  std::string input_type;  // what the texts are: "search_query", "search_document" ..
};

// Pairs (queries[i], documents[i]), or one query with all documents.
struct ScoreRequest {
  PoolingFields fields;
  std::vector<std::string> queries, documents;
};

struct RerankRequest {
  PoolingFields fields;
  std::string query;
  std::vector<std::string> documents;
  std::optional<int> top_n;  // number of results; 0 or nullopt: all
  bool return_documents = true;
};

inline constexpr int kTextsMax = 2048;  // of one request

// Also used for /pooling and /classify.
Result<EmbeddingRequest> parse_embedding_request(const boost::json::object& body, const RequestRules& rules);
Result<EmbedByTypeRequest> parse_embed_by_type_request(const boost::json::object& body,
                                                       const RequestRules& rules);
Result<ScoreRequest> parse_score_request(const boost::json::object& body, const RequestRules& rules);
Result<RerankRequest> parse_rerank_request(const boost::json::object& body, const RequestRules& rules);

}  // namespace octavo::openai
