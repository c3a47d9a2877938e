// The web page at `/`, with a playground and a live view of the engine. The page is built from web/ and
// embedded in the binary.
#pragma once

#include <string_view>

#include "http/message.h"

namespace octavo {

http::Response start_page();
// Returns the router's page, which shows the fleet instead of an engine.
http::Response fleet_page();
// Returns the page for clients without a valid key (401), which prompts for a key.
http::Response login_page();

// cmake/embed.cmake generates these strings from web/dist.
namespace page_files {
extern const std::string_view index;
extern const std::string_view login;
}  // namespace page_files

}  // namespace octavo
