// Records of finished requests: what determines a request's answers, and the answers. A record is one line
// of JSON, whose members are the fields of these structs (base/struct_json.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "request/request.h"

namespace octavo {

// The engine as far as answers depend on it. Engines with equal identities give equal answers.
struct EngineIdentity {
  std::string version{};
  std::string binary{};    // hash of the program's file
  std::string weights{};   // model_fingerprint() of the model
  std::string device{};    // device with its instruction set
  std::string layout{};    // numbers of ranks: tensor parallel, pipeline parallel
  std::string settings{};  // number formats

  bool operator==(const EngineIdentity&) const = default;
};

struct RecordedAnswer {
  int index = 0;                  // index of the answer, below n
  std::int64_t count = 0;         // number of output tokens
  std::vector<TokenId> tokens{};  // the output tokens; empty if only hashes are recorded
  std::string hash{};             // SHA-256 of the output tokens, or of the numbers of a pooling task
  std::string finish{};           // name of the FinishReason
};

struct Record {
  std::string id{};             // the client's id of the request
  std::int64_t arrived_us = 0;  // microseconds since 1970
  EngineIdentity engine{};
  std::string adapter{};           // hash of the adapter's files; "": no adapter
  std::int64_t prompt_tokens = 0;  // number of prompt tokens
  std::string request_hash{};      // SHA-256 of the JSON text of `request`
  std::optional<Request>
      request{};  // `entropy` is set; media have no bytes. nullopt: only hashes are recorded
  std::vector<RecordedAnswer> answers{};
};

// The line, without a line break. Adds request_hash. hashes_only: leaves out the request and the output
// tokens.
std::string record_line(Record record, bool hashes_only);

// Errors name the field.
Result<Record> parse_record(std::string_view line);

// Copy of a request for a record: without bytes of media, and without members that identify a client.
Request recorded_request(const Request& request);

std::string hash_of(const std::vector<TokenId>& tokens);
std::string hash_of(const std::vector<float>& numbers);

}  // namespace octavo
