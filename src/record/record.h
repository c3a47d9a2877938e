// Records of finished requests. A record contains the answers of a request and everything that determines
// the answers. A record is one line of JSON, and its members are the fields of these structs
// (base/struct_json.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "request/request.h"

namespace octavo {

// The properties of an engine that affect its answers. Engines with equal identities give equal answers to
// equal requests.
struct EngineIdentity {
  std::string version{};
  std::string binary{};    // hash of the executable file
  std::string weights{};   // model_fingerprint() of the model
  std::string device{};    // device with its instruction set
  std::string layout{};    // tensor-parallel and pipeline-parallel sizes
  std::string settings{};  // number formats of weights and cache

  bool operator==(const EngineIdentity&) const = default;
};

struct RecordedAnswer {
  int index = 0;  // index of the answer, in [0, n)
  std::int64_t count = 0;
  std::vector<TokenId> tokens{};  // output tokens; empty if the log records only hashes
  std::string hash{};  // SHA-256 of the output tokens, or of the floats that a pooling task returned
  std::string finish{};
};

struct Record {
  std::string id{};             // request id that the client sent
  std::int64_t arrived_us = 0;  // microseconds since 1970
  EngineIdentity engine{};
  std::string adapter{};  // hash of the adapter's files; "": no adapter
  std::int64_t prompt_tokens = 0;
  std::string request_hash{};  // SHA-256 of the JSON text of `request`
  std::optional<Request> request{};  // nullopt if the log records only hashes; otherwise `entropy` is set
  std::vector<RecordedAnswer> answers{};
};

// Returns the record as one line without a line break, and adds request_hash. With hashes_only, omits the
// request and the output tokens.
std::string record_line(Record record, bool hashes_only);

// Returns an error with the name of the invalid field if the line is not a record.
Result<Record> parse_record(std::string_view line);

// Copies a request for a record, without the members that identify a client. `media` decides whether the
// copy keeps the bytes of media.
Request recorded_request(const Request& request, bool media);

// Appends an output to the recorded answers. The last output of an answer also sets count, hash and finish.
void add_output(const Output& output, std::vector<RecordedAnswer>& answers);

std::string hash_of(const std::vector<TokenId>& tokens);
std::string hash_of(const std::vector<float>& numbers);

}  // namespace octavo
