#include "fakegpu/rig_test.h"

#include <nlohmann/json.hpp>

namespace flyball::fakegpu {

double Rig::number(const Words& words, const std::string& pointer) {
  const std::lock_guard lock(mutex_);
  const auto answer = node_->command(words);
  if (!answer) {
    ADD_FAILURE() << answer.error().message();
    return 0;
  }
  if (pointer.empty()) return 0;
  return nlohmann::json::parse(*answer).at(nlohmann::json::json_pointer(pointer)).get<double>();
}

}  // namespace flyball::fakegpu
