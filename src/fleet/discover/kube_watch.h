// Keeps a KubeMirror current: lists the objects, watches them, and lists again if necessary.
#pragma once

#include <string>

#include "fleet/discover/follower.h"
#include "fleet/discover/kube_api.h"
#include "fleet/discover/kube_mirror.h"

namespace octavo::fleet {

class KubeWatch {
 public:
  // See KubeMirror for `path` and `selector`. `sink` is called on the watch's thread and must outlive the
  // watch. While the server does not respond, known objects stay.
  KubeWatch(KubeApi api, std::string path, std::string selector, KubeSink& sink);

 private:
  // Reads the whole list, or one watch until its end.
  Result<> once();
  Result<> watch(KubeConnection& connection);

  const KubeApi api_;
  KubeMirror mirror_;
  Follower follower_;
};

}  // namespace octavo::fleet
