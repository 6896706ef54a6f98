#include "guardd/lock.h"

namespace flyball::guardd {

Result<LockFile> take_lock(const std::string& journal) {
  return LockFile::take(journal + ".lock", {"another guard runs with this journal", "stop that one first",
                                            "create its folder, or run as root: `sudo flyball-guard …`"});
}

}  // namespace flyball::guardd
