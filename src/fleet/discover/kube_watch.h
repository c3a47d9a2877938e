// Keeps a KubeMirror current: lists, watches, and lists again if needed.
#pragma once

#include <string>

#include "fleet/discover/follower.h"
#include "fleet/discover/kube_api.h"
#include "fleet/discover/kube_mirror.h"

namespace octavo::fleet {

class KubeWatch {
 public:
  // path, selector: see KubeMirror. sink: must outlive the watch; called on its thread. While the server does
  // not answer, known objects stay.
  KubeWatch(KubeApi api, std::string path, std::string selector, KubeSink& sink);

 private:
  // Reads the list or one watch, to its end.
  Result<> once();
  Result<> watch(KubeConnection& connection);

  const KubeApi api_;
  KubeMirror mirror_;
  Follower follower_;
};

}  // namespace octavo::fleet
