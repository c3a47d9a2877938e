// Request bodies of pooling routes: OpenAI's /v1/embeddings, vLLM's /pooling, /classify and /score, Cohere's
// /v2/embed, and Jina's and Cohere's /rerank.
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

struct PoolingFields {
  std::string request_id;
  std::string adapter;  // name of the LoRA adapter; "": none
  std::int64_t priority = 0;
  std::optional<int> truncate;  // maximum number of tokens of a text, which is truncated; -1: the model's
                                // maximum
  bool keep_last = false;       // truncation keeps the last tokens instead of the first ones
  bool add_special_tokens = true;
  // Whether vectors are normalised and scores become probabilities. nullopt: the server's default.
  std::optional<bool> activated;
  std::vector<std::string> unknown_fields;
};

struct EmbeddingRequest {
  PoolingFields fields;
  std::vector<TextOrTokens> input;
  std::optional<ChatPrompt> chat;  // replaces the input: the chat template renders it to one text
  bool base64 = false;
  std::optional<int> dimensions;  // number of components to keep of a vector, from the first one on
  std::optional<Task> task;       // nullopt: the server's task
  std::string input_type;         // Jina's `task`: the type of the texts, such as "retrieval.query"
};

// Cohere's request: each vector is returned in several formats.
struct EmbedByTypeRequest {
  // binary and ubinary: one bit for each number
  enum class Type : std::uint8_t { float32, base64, binary, ubinary };

  PoolingFields fields;
  std::vector<std::string> texts;
  std::vector<Type> types;
  std::optional<int> dimensions;
  std::optional<int> tokens_max;  // a text with more tokens is an error
  std::string input_type;         // type of the texts: "search_query", "search_document", ..
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

inline constexpr int kTextsMax = 2048;  // maximum number of texts in a request

// Parses the body of /v1/embeddings, /pooling and /classify.
Result<EmbeddingRequest> parse_embedding_request(const boost::json::object& body, const RequestRules& rules);
Result<EmbedByTypeRequest> parse_embed_by_type_request(const boost::json::object& body,
                                                       const RequestRules& rules);
Result<ScoreRequest> parse_score_request(const boost::json::object& body, const RequestRules& rules);
Result<RerankRequest> parse_rerank_request(const boost::json::object& body, const RequestRules& rules);

}  // namespace octavo::openai
