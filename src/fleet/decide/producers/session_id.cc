// session-id-producer: where a request's session stands, for those who keep sessions together.
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/plugins.h"
#include "fleet/decide/session.h"

namespace octavo::fleet {

std::unique_ptr<Plugin> make_session_id_producer(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<SessionIdProducer>();
  parameters.read("headerName", plugin->source.header);
  parameters.read("cookieName", plugin->source.cookie);
  if (plugin->source.header.empty() == plugin->source.cookie.empty())
    parameters.fail("headerName", "must be given, or cookieName, and not both");
  plugin->source.header =
      plugins.reads_header(plugin->source.header.empty() ? "cookie" : plugin->source.header);
  return plugin;
}

}  // namespace octavo::fleet
