#include "record/record.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/base64.h"
#include "base/exact_json.h"
#include "base/sha256.h"
#include "base/struct_json.h"

namespace octavo {
namespace {

template <class Bytes>
std::string sha256_of(const Bytes& bytes) {
  Sha256 hash;
  hash.add(std::as_bytes(std::span(bytes)));
  return hash.hex();
}

}  // namespace

void add_output(const Output& output, std::vector<RecordedAnswer>& answers) {
  auto answer = std::ranges::find(answers, output.index, &RecordedAnswer::index);
  if (answer == answers.end()) answer = answers.insert(answer, {.index = output.index});
  answer->tokens.insert(answer->tokens.end(), output.token_ids.begin(), output.token_ids.end());
  if (!output.pooled.empty()) answer->hash = hash_of(output.pooled);
  if (!output.finished) return;
  answer->count = std::ssize(answer->tokens);
  answer->finish = name(*output.finished);
  if (answer->hash.empty()) answer->hash = hash_of(answer->tokens);
}

std::string hash_of(const std::vector<TokenId>& tokens) { return sha256_of(tokens); }
std::string hash_of(const std::vector<float>& numbers) { return sha256_of(numbers); }

// Media are removed before hashing, so the hash does not depend on RecordOptions::media.
std::string record_line(Record record, bool hashes_only) {
  if (record.request) {
    std::vector<std::string> media;
    for (MediaPart& part : record.request->media) media.push_back(std::exchange(part.bytes, {}));
    record.request_hash = sha256_of(exact_json_text(to_json(*record.request)));
    for (std::size_t i = 0; i < media.size(); ++i) record.request->media[i].bytes = encode_base64(media[i]);
  }
  if (hashes_only) {
    record.request.reset();
    for (RecordedAnswer& answer : record.answers) answer.tokens.clear();
  }
  return exact_json_text(to_json(record));
}

Result<Record> parse_record(std::string_view line) {
  boost::system::error_code error;
  const boost::json::value value = parse_exact_json(line, error);
  if (error) return invalid("", "must be JSON");
  TRY(Record record, from_json<Record>(value));
  if (!record.request) return record;
  for (MediaPart& part : record.request->media) {
    TRY(part.bytes, decode_base64(part.bytes));
  }
  return record;
}

Request recorded_request(const Request& request, bool media) {
  Request copy = request;
  for (MediaPart& part : copy.media)
    if (!media) part.bytes.clear();
  copy.name.clear();
  copy.identity.tenant.clear();
  copy.identity.salt.clear();
  if (copy.kv_transfer) {
    copy.kv_transfer->remote_request_id.clear();
    copy.kv_transfer->remote_block_ids.clear();
  }
  return copy;
}

}  // namespace octavo
