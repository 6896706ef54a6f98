#pragma once
// Words of a profile, in the order of their enumerations.

#include <span>
#include <string_view>

#include "meter/profile.h"

namespace flyball::meter {

std::span<const std::string_view> protocol_words();
std::span<const std::string_view> type_words();
std::span<const std::string_view> order_words();
std::span<const std::string_view> table_words();

}  // namespace flyball::meter
