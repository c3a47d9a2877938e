// octavo session list, export and import: the sessions of a server.
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/commands.h"
#include "app/session_rows.h"
#include "http/client.h"
#include "http/url.h"
#include "openai/session_path.h"
#include "transfer/session_file.h"

namespace octavo {
namespace {

namespace json = boost::json;

struct SessionOptions {
  std::string url = "127.0.0.1:8000";
  std::string api_key;
  std::string client;  // header "NAME: VALUE" that names the tenant; "": none
  std::string session;
  std::string path;
};

// One connection to the server for all requests.
class SessionServer {
 public:
  static Result<SessionServer> connect(const SessionOptions& options) {
    TRY(const http::Url at, http::parse_url(options.url));
    TRY(http::Client client,
        http::Client::connect({.host = at.host, .port = at.port, .tls = at.tls, .timeout_ms = 600'000}));
    SessionServer server{std::move(client)};
    if (!options.api_key.empty()) server.headers_.add("Authorization", "Bearer " + options.api_key);
    if (const std::size_t colon = options.client.find(':'); colon != std::string::npos) {
      const std::size_t value = options.client.find_first_not_of(' ', colon + 1);
      server.headers_.add(options.client.substr(0, colon),
                          value == std::string::npos ? "" : options.client.substr(value));
    } else if (!options.client.empty()) {
      return invalid("client", "must be a header as NAME: VALUE, got {}", options.client);
    }
    return server;
  }

  // Returns the response if its status is 200, otherwise the server's error.
  Result<http::Response> call(std::string_view method, const std::string& target, std::string body = {}) {
    http::Headers headers = headers_;
    if (!body.empty()) headers.add("Content-Type", "application/octet-stream");
    TRY(http::Response response, client_.request(method, target, std::move(body), headers));
    if (response.status == 200) return response;
    boost::system::error_code wrong;
    const json::value answer = json::parse(response.body, wrong);
    const json::value* message = wrong ? nullptr : answer.find_pointer("/error/message", wrong);
    const std::string text = message && message->is_string() ? std::string(message->get_string())
                                                             : std::string(response.body.substr(0, 200));
    return failure(response.status / 100 == 4 ? ErrorCode::invalid_argument : ErrorCode::io,
                   "{} {} returned status {}: {}", method, target, response.status, text);
  }

 private:
  explicit SessionServer(http::Client client) : client_(std::move(client)) {}

  http::Client client_;
  http::Headers headers_;
};

std::string path_of(const std::string& session, std::string_view action) {
  return fmt::format("{}/{}/{}", openai::kSessionsPath, openai::encoded_session_id(session), action);
}

Result<> list_sessions(const SessionOptions& o) {
  TRY(SessionServer server, SessionServer::connect(o));
  for (std::string after;;) {
    const std::string rest = after.empty() ? "" : "&after=" + openai::encoded_session_id(after);
    TRY(const http::Response response,
        server.call("GET", fmt::format("{}?limit=1000{}", openai::kSessionsPath, rest)));
    TRY(const SessionPage page, read_session_page(response.body));
    fmt::print("{}", session_lines(page.rows, after.empty()));
    if (!page.more) return {};
    after = page.rows.back().id;
  }
}

// Writes to a temporary file first, so that the file exists only if it is complete.
Result<> export_session(const SessionOptions& o) {
  TRY(SessionServer server, SessionServer::connect(o));
  const std::string unfinished = o.path + ".part";
  std::ofstream out(unfinished, std::ios::binary | std::ios::trunc);
  std::optional<SessionPartHeader> first;
  for (std::string piece = "0"; !piece.empty();) {
    TRY(const http::Response response, server.call("GET", path_of(o.session, "export?first=" + piece)));
    TRY(SessionPart part, read_session_part(response.body));
    if (!first) first = part.header;
    if (part.header.tokens != first->tokens || part.header.identity != first->identity)
      return failure(ErrorCode::unavailable,
                     "the session {} has changed during the export: export it between two turns", o.session);
    out.write(response.body.data(), static_cast<std::streamsize>(response.body.size()));
    piece = response.headers.find("X-Octavo-Next-Piece").value_or("");
  }
  out.close();
  std::error_code wrong;
  if (out) std::filesystem::rename(unfinished, o.path, wrong);
  if (!out || wrong)
    return field_failure("file", ErrorCode::io, "{} cannot be written: check the disk's free space", o.path);
  fmt::print("{}: {} tokens\n", o.path, first->tokens.size());
  return {};
}

Result<> import_session(const SessionOptions& o) {
  TRY(SessionServer server, SessionServer::connect(o));
  std::ifstream in(o.path, std::ios::binary);
  if (!in) return field_failure("file", ErrorCode::not_found, "{} cannot be read", o.path);
  std::error_code wrong;
  std::uintmax_t left = std::filesystem::file_size(o.path, wrong);
  if (wrong || left == 0) return invalid("file", "{} is empty or not a file", o.path);
  http::Response last;
  while (left > 0) {
    std::string part(kSessionPartPrefixBytes, '\0');
    in.read(part.data(), static_cast<std::streamsize>(part.size()));
    TRY(const std::size_t bytes,
        session_part_bytes(std::string_view(part).substr(0, static_cast<std::size_t>(in.gcount()))));
    if (bytes > left) return invalid("file", "{} is incomplete: {} bytes are missing", o.path, bytes - left);
    const std::size_t begun = part.size();
    part.resize(bytes);
    in.read(part.data() + begun, static_cast<std::streamsize>(bytes - begun));
    if (!in) return field_failure("file", ErrorCode::io, "{} cannot be read", o.path);
    left -= bytes;
    TRY(last, server.call("POST", path_of(o.session, "import"), std::move(part)));
  }
  boost::system::error_code not_json;
  const json::value answer = json::parse(last.body, not_json);
  const SessionRow session = answer.is_object() ? read_session(answer.get_object()) : SessionRow();
  if (session.state != "retained")
    return invalid("file", "{} is incomplete: its last parts are missing", o.path);
  fmt::print("{}: {} tokens\n", o.session, session.held_tokens);
  return {};
}

CLI::App* session_command(CLI::App& parent, const std::string& name, const std::string& help,
                          const std::shared_ptr<SessionOptions>& options) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->add_option("--url", options->url, "Server or router, as HOST:PORT or http(s)://HOST:PORT")
      ->capture_default_str();
  command->add_option("--api-key", options->api_key, "API key to send; it identifies the tenant")
      ->envname("OCTAVO_API_KEY");
  command->add_option("--client", options->client,
                      "Header that names the tenant, as NAME: VALUE (see --client-header of the server)");
  if (name == "list") return command;
  command->add_option("session", options->session, "Name of the session")->required();
  command->add_option("file", options->path, "Path of the file")->required();
  return command;
}

}  // namespace

void add_session(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand("session", "List, export and import sessions of a server");
  command->require_subcommand(1);
  auto options = std::make_shared<SessionOptions>();
  outcome.runs(*session_command(*command, "list", "List sessions with their size, age and hits", options),
               options, list_sessions);
  outcome.runs(*session_command(*command, "export", "Write the KV cache of a session to a file", options),
               options, export_session);
  outcome.runs(*session_command(*command, "import",
                                "Read the KV cache of a session from a file; the server needs the same model "
                                "and --enable-session-import",
                                options),
               options, import_session);
}

}  // namespace octavo
