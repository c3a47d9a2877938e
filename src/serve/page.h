// The page at `/`: a playground and a live view of the engine, built from web/ and embedded in the binary.
#pragma once

#include <string_view>

#include "http/message.h"

namespace octavo {

http::Response start_page();
// The router's page, which shows the fleet instead of an engine.
http::Response fleet_page();
// The page for clients without a valid key (401): it asks for a key.
http::Response login_page();

// cmake/embed.cmake generates these from web/dist.
namespace page_files {
extern const std::string_view index;
extern const std::string_view login;
}  // namespace page_files

}  // namespace octavo
