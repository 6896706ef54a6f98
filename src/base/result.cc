#include "base/result.h"

namespace flyball {

std::string Error::message() const {
  std::string text = where.empty() ? what : where + ": " + what;
  if (!remedy.empty()) text += "; " + remedy;
  return text;
}

}  // namespace flyball
