#pragma once
// Passwords and communities. They come from a file or the environment, never from a profile or a command line, and no
// message has them.

#include <string>

#include "base/filesystem.h"
#include "base/result.h"
#include "meter/profile.h"

namespace flyball::meter {

/// Has no way to be formatted, compared or copied by accident; overwritten when it is gone.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}
  ~Secret();
  Secret(Secret&&) noexcept = default;
  Secret& operator=(Secret&&) noexcept = default;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  /// For the library that needs it, at the moment it does.
  const std::string& reveal() const { return text_; }
  bool empty() const { return text_.empty(); }

 private:
  std::string text_;
};

/// Without line ends. Empty where the profile names no place. A file that others than its owner's group may read, and a
/// variable that is not set, are errors of input.
Result<Secret> load_secret(const SecretPlace& place, const std::string& what);

}  // namespace flyball::meter
