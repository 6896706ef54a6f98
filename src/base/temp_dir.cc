#include "base/temp_dir.h"

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace flyball {

TempDir::TempDir() {
  path_ = (std::filesystem::temp_directory_path() / "flyball-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder " + path_);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string shared_data_folder() {
  const char* set = std::getenv("FLYBALL_SHARED");
  const std::string root = set != nullptr ? set : "../shared";
  std::error_code ignored;
  return std::filesystem::is_directory(root + "/data", ignored) ? root + "/data" : std::string();
}

}  // namespace flyball
