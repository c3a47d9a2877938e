// A copy of a collection in a Kubernetes API, kept current by list and watch requests. The class parses the
// responses. KubeWatch owns the connection and the clock.
#pragma once

#include <boost/json/fwd.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::fleet {

// Receives the changes of a collection, in order for each object.
class KubeSink {
 public:
  KubeSink() = default;
  KubeSink(const KubeSink&) = delete;
  KubeSink& operator=(const KubeSink&) = delete;
  virtual ~KubeSink() = default;

  virtual void put(const std::string& name, const boost::json::object& object) = 0;
  virtual void removed(const std::string& name) = 0;
  virtual void settled() = 0;  // called when the list is complete, and after each change
};

class KubeMirror {
 public:
  // `path` is the collection, such as "/api/v1/namespaces/default/pods". `selector` is a query such as
  // "labelSelector=app%3Dx", or "".
  KubeMirror(std::string path, std::string selector, KubeSink& sink)
      : path_(std::move(path)), selector_(std::move(selector)), sink_(sink) {}

  const std::string& path() const { return path_; }
  // Returns the target of the next request, which is a page of the list if listing() is true, and the watch
  // otherwise.
  std::string target() const;
  bool listing() const { return listing_; }
  void start_over();  // requests the list again; known objects stay until the new list is complete

  // Applies a page of the list. `status` is the HTTP status. Returns an error if the page is invalid.
  Result<> page(int status, std::string_view body);
  // Applies one line of the watch. After an error event 410, listing() is true. Returns an error if the
  // line is invalid.
  Result<> line(std::string_view text);
  Result<> refused(int status, std::string_view body);

 private:
  Result<> take(const boost::json::value& object, std::set<std::string>& names);

  const std::string path_;
  const std::string selector_;
  KubeSink& sink_;
  bool listing_ = true;
  std::string version_;          // resource version of the list or of the last change
  std::string next_page_;        // the list's continue token; "": request the first page
  std::set<std::string> names_;
  std::set<std::string> listed_;
};

}  // namespace octavo::fleet
