// Routes of OpenAI's files: /v1/files.
#include <boost/json/array.hpp>
#include <charconv>
#include <utility>

#include "base/quoted_text.h"
#include "batches/calls.h"
#include "batches/content.h"
#include "batches/line.h"
#include "http/form.h"
#include "text/utf8.h"

namespace octavo::batches {

namespace json = boost::json;

namespace {

constexpr std::size_t kFilenameBytesMax = 512;
constexpr std::int64_t kListedMax = 10'000;
constexpr std::int64_t kLifetimeMinS = 3'600, kLifetimeMaxS = 30 * 86'400;

json::object file_json(const StoredFile& file) {
  json::object out{{"id", file.id},
                   {"object", "file"},
                   {"bytes", file.bytes},
                   {"created_at", file.created_at},
                   {"expires_at", nullptr},
                   {"filename", file.filename},
                   {"purpose", file.purpose},
                   {"status", "processed"},
                   {"status_details", nullptr}};
  if (file.expires_at > 0) out["expires_at"] = file.expires_at;
  return out;
}

Result<std::int64_t> lifetime(std::string_view text) {
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || seconds < kLifetimeMinS ||
      seconds > kLifetimeMaxS)
    return invalid("expires_after[seconds]", "must be an integer from {} to {}, got {}", kLifetimeMinS,
                   kLifetimeMaxS, quoted_text(text.substr(0, 100)));
  return seconds;
}

struct Upload {
  StoredFile file;
  std::string_view content;
};

Result<Upload> read_upload(const std::vector<http::FormPart>& form) {
  Upload upload;
  bool has_file = false;
  for (const http::FormPart& part : form) {
    if (part.name == "file") {
      has_file = true;
      upload.content = part.data;
      upload.file.filename =
          replace_invalid_utf8(part.filename.value_or("upload").substr(0, kFilenameBytesMax));
    } else if (part.name == "purpose") {
      upload.file.purpose = part.data;
    } else if (part.name == "expires_after[seconds]") {
      TRY(const std::int64_t seconds, lifetime(part.data));
      upload.file.expires_at = unix_time() + seconds;
    } else if (part.name == "expires_after[anchor]") {
      if (part.data != "created_at")
        return invalid(part.name, "must be created_at, got {}", quoted_text(part.data.substr(0, 100)));
    } else {
      return invalid(part.name.substr(0, 100),
                     "is not a field of a file: use file, purpose and expires_after");
    }
  }
  if (!has_file || upload.content.empty()) return invalid("file", "must be a file that is not empty");
  if (upload.file.purpose != kInput)
    return invalid("purpose", "must be batch, got {}, because no route of this server reads other files",
                   quoted_text(upload.file.purpose.substr(0, 100)));
  return upload;
}

}  // namespace

Result<> upload_file(Call& call) {
  const std::string body = call.exchange->take_body();
  TRY(const std::vector<http::FormPart> form,
      http::parse_form(call.exchange->request().headers.find("Content-Type").value_or(""), body));
  TRY(Upload upload, read_upload(form));
  upload.file.id = "file-" + random_hex();
  upload.file.owner = call.owner;
  upload.file.created_at = unix_time();
  TRY(const StoredFile file, call.store.add_file(std::move(upload.file), upload.content));
  respond(call, file_json(file));
  return {};
}

Result<> list_files(Call& call) {
  PageOf page{.after = query_of(call, "after")};
  TRY(page.limit, limit_of(call, kListedMax, kListedMax));
  const std::string order = query_of(call, "order");
  if (!order.empty() && order != "asc" && order != "desc")
    return invalid("order", "must be asc or desc, got {}", quoted_text(order.substr(0, 100)));
  page.oldest_first = order == "asc";
  TRY(const Page<StoredFile> files, call.store.files(call.owner, query_of(call, "purpose"), page));
  json::array data;
  for (const StoredFile& file : files.records) data.push_back(file_json(file));
  json::object out{
      {"object", "list"}, {"has_more", files.has_more}, {"first_id", nullptr}, {"last_id", nullptr}};
  if (!files.records.empty()) {
    out["first_id"] = files.records.front().id;
    out["last_id"] = files.records.back().id;
  }
  out["data"] = std::move(data);
  respond(call, out);
  return {};
}

Result<> show_file(Call& call) {
  TRY(const StoredFile file, call.store.file(call.owner, call.id));
  respond(call, file_json(file));
  return {};
}

Result<> delete_file(Call& call) {
  TRY_VOID(call.store.remove_file(call.owner, call.id));
  respond(call, {{"id", call.id}, {"object", "file"}, {"deleted", true}});
  return {};
}

Result<> file_content(Call& call) {
  TRY(const StoredFile file, call.store.file(call.owner, call.id));
  return send_file(call.host, call.exchange, call.store.path_of(file.id), "application/octet-stream");
}

}  // namespace octavo::batches
