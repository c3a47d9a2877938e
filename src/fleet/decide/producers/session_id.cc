// session-id-producer: configures which header or cookie contains the session id. The session-affinity
// plugins read this configuration.
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/plugins.h"
#include "fleet/decide/session.h"

namespace octavo::fleet {

std::unique_ptr<Plugin> make_session_id_producer(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<SessionIdProducer>();
  SessionSource& source = plugin->sources.emplace_back();
  parameters.read("headerName", source.header);
  parameters.read("cookieName", source.cookie);
  if (source.header.empty() == source.cookie.empty())
    parameters.fail("headerName", "must be given if cookieName is not given, and only then");
  source.header = plugins.reads_header(source.header.empty() ? "cookie" : source.header);
  return plugin;
}

}  // namespace octavo::fleet
