#include "record/record.h"

#include <span>
#include <utility>

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

std::string hash_of(const std::vector<TokenId>& tokens) { return sha256_of(tokens); }
std::string hash_of(const std::vector<float>& numbers) { return sha256_of(numbers); }

std::string record_line(Record record, bool hashes_only) {
  if (record.request) record.request_hash = sha256_of(exact_json_text(to_json(*record.request)));
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
  return from_json<Record>(value);
}

Request recorded_request(const Request& request) {
  Request copy = request;
  for (MediaPart& part : copy.media) part.bytes.clear();
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
