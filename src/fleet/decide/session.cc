#include "fleet/decide/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/base64.h"
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugins.h"

namespace octavo::fleet {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// Reads one source of session ids: {header: name}, {attribute: "SessionIDDataKey", producer: name of a
// session-id-producer} or {attribute: "agent-identity"}.
std::vector<SessionSource> read_source(Parameters& fields, Plugins& plugins) {
  std::string header, attribute;
  fields.read("header", header);
  fields.read("attribute", attribute);
  std::string producer = attribute == "agent-identity" ? attribute : "session-id-producer";
  fields.read("producer", producer);
  if (header.empty() == attribute.empty())
    fields.fail("header", "must be given if attribute is not given, and only then");
  if (attribute.empty()) return {{.header = plugins.reads_header(header)}};
  const auto* known = dynamic_cast<const SessionIdProducer*>(plugins.find(producer));
  if (!known) fields.fail("producer", "must name a session-id-producer or agent-identity");
  return known ? known->sources : std::vector<SessionSource>();
}

}  // namespace

std::string_view SessionSource::id(const RouteRequest& request) const {
  std::string_view rest = request.header(header).value_or("");
  if (cookie.empty()) return trimmed(rest);
  while (!rest.empty()) {
    const std::string_view pair = trimmed(rest.substr(0, rest.find(';')));
    rest.remove_prefix(std::min(rest.find(';'), rest.size() - 1) + 1);
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == cookie)
      return trimmed(pair.substr(equals + 1));
  }
  return {};
}

std::string_view session_of(std::span<const SessionSource> sources, const RouteRequest& request) {
  for (const SessionSource& source : sources)
    if (const std::string_view id = source.id(request); !id.empty()) return id;
  return {};
}

SessionAffinity::SessionAffinity(Parameters& parameters, Plugins& plugins) {
  constexpr std::string_view kEncoded = "encoded_endpoint_header", kId = "session_id";
  std::string strategy(kEncoded), profile;
  parameters.read("strategy", strategy);
  parameters.read("profileName", profile);
  if (!profile.empty())
    parameters.fail("profileName",
                    "must be empty, because a session stays with the endpoint that answered first");
  if (strategy != kEncoded && strategy != kId)
    parameters.fail("strategy", "must be \"encoded_endpoint_header\" or \"session_id\"");
  strategy == kId ? read_ids(parameters, plugins) : read_token(parameters, plugins);
}

void SessionAffinity::read_token(Parameters& parameters, Plugins& plugins) {
  parameters.get("sessionIdConfig");  // ignored, because it is for the strategy session_id
  std::string header;
  parameters.read_object("encodedEndpointHeaderConfig",
                         [&](Parameters& fields) { fields.read("header", header); });
  header = trimmed(header);
  token_header_ = plugins.reads_header(header.empty() ? "x-session-token" : header);
}

void SessionAffinity::read_ids(Parameters& parameters, Plugins& plugins) {
  // ignored, because it is for the strategy encoded_endpoint_header
  parameters.get("encodedEndpointHeaderConfig");
  double ttl = 300, sweep = 10;
  parameters.read_object("sessionIdConfig", [&](Parameters& fields) {
    fields.read("evictionTtlSeconds", ttl, 1e-3, 1e9);
    // has no effect, because expired entries are removed once a second
    fields.read("evictionSweepSeconds", sweep, 1e-3, 1e9);
    const auto* sources = fields.get("sources");
    if (!sources) return;
    if (!sources->is_array()) return fields.fail("sources", "must be a list");
    for (std::size_t i = 0; i < sources->get_array().size(); ++i) {
      const std::string where = fmt::format("sources[{}]", i);
      if (!sources->get_array()[i].is_object()) return fields.fail(where, "must be an object");
      Parameters source(sources->get_array()[i].get_object(), "");
      for (SessionSource& one : read_source(source, plugins)) sources_.push_back(std::move(one));
      if (const auto done = source.done(); !done)
        return fields.fail(where + "." + done.error().field, done.error().message);
    }
  });
  if (sources_.empty()) sources_.push_back({.header = plugins.reads_header("x-session-id")});
  keys_.idle_max_us = static_cast<std::int64_t>(ttl * 1e6);
}

const Member* SessionAffinity::home(const Cycle& cycle, std::span<const Member* const> candidates) {
  if (!token_header_.empty()) {
    const auto name = decode_base64(cycle.request.header(token_header_).value_or(""));
    const auto named = std::ranges::find_if(
        candidates, [&](const Member* member) { return name && member->endpoint->name == *name; });
    return named != candidates.end() ? *named : nullptr;
  }
  const EndpointId bound = keys_.find(session_of(sources_, cycle.request));
  const auto found = std::ranges::find(candidates, bound, &Member::id);
  home_was_available_ = found != candidates.end();
  return home_was_available_ ? *found : nullptr;
}

void SessionAffinity::add_answer_headers(const Member& endpoint, HeaderFields& fields) const {
  if (!token_header_.empty()) fields.emplace_back(token_header_, encode_base64(endpoint.endpoint->name));
}

// A session stays at its endpoint, even if the scores of other plugins have sent this request elsewhere.
void SessionAffinity::sent(const Cycle& cycle, EndpointId endpoint) {
  const std::string_view id = session_of(sources_, cycle.request);
  if (id.empty()) return;
  const EndpointId bound = keys_.find(id);
  if (bound == kNoEndpoint || bound == endpoint || !home_was_available_)
    keys_.put(id, endpoint, cycle.now_us);
}

}  // namespace octavo::fleet
