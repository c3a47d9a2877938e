#include <boost/json/parse.hpp>

#include "model/families/families.h"

namespace octavo {
namespace family_files {

extern const std::string_view defaults;  // defaults.json, embedded by cmake/embed.cmake

}  // namespace family_files

const boost::json::object& field_defaults(std::string_view architecture) {
  static const boost::json::object kAll = boost::json::parse(family_files::defaults).as_object();
  static const boost::json::object kNone;
  const boost::json::value* found = kAll.if_contains(architecture);
  return found != nullptr && found->is_object() ? found->get_object() : kNone;
}

}  // namespace octavo
