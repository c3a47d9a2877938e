// Reads the bodies of the pooling routes: OpenAI's /v1/embeddings, vLLM's /pooling, /classify and /score,
// Cohere's /v2/embed, and Jina's and Cohere's /rerank.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "request/pooling.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/completion_request.h"

namespace octavo::openai {

struct PoolingFields {
  std::string request_id;
  std::string adapter;  // name of the LoRA adapter; "": no adapter
  std::int64_t priority = 0;
  // longer texts are truncated to this number of tokens; -1: the model's maximum; nullopt: they are an error
  std::optional<int> truncate;
  bool keep_last = false;  // whether truncation keeps the last tokens instead of the first ones
  bool pad = false;        // whether the text is padded to the model's maximum
  bool add_special_tokens = true;
  // whether vectors are normalised and scores become probabilities; nullopt: the server's default
  std::optional<bool> activated;
  std::vector<std::string> unknown_fields;
};

// How a reply writes vectors.
struct VectorFormat {
  // bytes, bytes_only: the reply's body is the numbers of all vectors, not JSON.
  enum class Form : std::uint8_t { list, base64, bytes, bytes_only };
  enum class Number : std::uint8_t { float32, float16, bfloat16, fp8_e4m3, fp8_e5m2 };
  enum class Order : std::uint8_t { native, little, big };

  Form form = Form::list;
  Number number = Number::float32;  // for lists, always float32
  Order order = Order::native;      // order of the bytes of a number

  bool is_binary() const { return form == Form::bytes || form == Form::bytes_only; }
  static constexpr std::string_view kForms[] = {"float", "base64", "bytes", "bytes_only"};
  static constexpr std::string_view kNumbers[] = {"float32", "float16", "bfloat16", "fp8_e4m3", "fp8_e5m2"};
  static constexpr std::string_view kOrders[] = {"native", "little", "big"};
};

struct EmbeddingRequest {
  PoolingFields fields;
  std::vector<TextOrTokens> input;
  std::optional<ChatPrompt> chat;  // replaces `input`: the chat template renders the chat to one text
  VectorFormat format{};
  std::optional<int> dimensions;  // number of components of each vector in the reply; the rest of the vector
                                  // is cut off
  std::optional<Task> task;       // nullopt: the server's default task
  std::string input_type;         // Jina's `task`: the type of the texts, such as "retrieval.query"
  // late chunking: the reply has the mean of the token vectors of each chunk of so many tokens
  std::optional<std::int64_t> late_chunk_size{};
};

// Cohere's request, whose reply contains each vector in all formats of `types`.
struct EmbedByTypeRequest {
  // binary and ubinary have one bit for each component.
  enum class Type : std::uint8_t { float32, base64, binary, ubinary };

  PoolingFields fields;
  std::vector<std::string> texts;
  // Inputs with parts, each as a conversation of one message. If no input has an image, `texts` has the same
  // inputs, for models without a chat template.
  std::vector<ChatPrompt> chats{};
  std::vector<ChatPrompt::Media> media{};  // images of all chats, in order; chats[i].media only counts them
  std::vector<Type> types;
  std::optional<int> dimensions;
  std::optional<int> tokens_max;  // a text with more tokens is an error
  std::string input_type;         // type of the texts, such as "search_query" or "search_document"
};

// Options for pairs of a query and a document.
struct PairOptions {
  // number of tokens to which the texts are shortened before they are paired; 0: not
  int tokens_per_query = 0, tokens_per_document = 0;
  std::string template_kwargs{};  // arguments of the chat template for pairs, a JSON object; "": none
};

// A query or a document.
struct ScoreInput {
  std::string field;  // name in the body, such as "documents[2]"
  std::string text;
  std::size_t media = 0;         // number of images and videos, whose placeholders precede the text
  boost::json::value content{};  // the list of parts as the client sent it; null: the client sent a text
};

// Pairs of queries[i] and documents[i], or one query for all documents.
struct ScoreRequest {
  PoolingFields fields;
  PairOptions pairs;
  std::vector<ScoreInput> queries, documents;
  std::vector<ChatPrompt::Media> media{};  // media of all queries, then of all documents
};

struct RerankRequest {
  ScoreRequest scored;       // one query
  std::optional<int> top_n;  // number of results; 0 or nullopt: all
  bool return_documents = true;
};

// The body of any pooling route.
using PoolingRequest = std::variant<EmbeddingRequest, EmbedByTypeRequest, ScoreRequest, RerankRequest>;

inline constexpr int kTextsMax = 2048;  // maximum number of texts in one request
// maximum number of images and videos in all prompts of a request; a pair's prompt has those of both
inline constexpr std::size_t kScoredMediaMax = 256;

// Reads the body of /v1/embeddings, /pooling or /classify.
Result<EmbeddingRequest> parse_embedding_request(const boost::json::object& body, const RequestRules& rules);
Result<EmbedByTypeRequest> parse_embed_by_type_request(const boost::json::object& body,
                                                       const RequestRules& rules);
Result<ScoreRequest> parse_score_request(const boost::json::object& body, const RequestRules& rules);
Result<RerankRequest> parse_rerank_request(const boost::json::object& body, const RequestRules& rules);

}  // namespace octavo::openai
