#pragma once
#include <string>

namespace flyball {

/// A folder of its own for a test, removed with all it holds at the end of the scope.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// The folder of measured public data ($FLYBALL_SHARED or ../shared beside the checkout), or empty when it is not
/// there.
std::string shared_data_folder();

}  // namespace flyball
