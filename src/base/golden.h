#pragma once
// Files under tests/golden/ that hold what an output must be, byte for byte. They are rewritten only on purpose: with
// FLYBALL_UPDATE_GOLDEN=1 or `ROOM_test --update-golden`, in a commit of their own.

#include <string>
#include <string_view>

namespace flyball {

/// Whether this run rewrites instead of comparing.
bool updating_golden();

/// Empty if `actual` is what tests/golden/`name` holds (tests run in the root of the checkout); else the first line
/// that differs and how to accept it. Use: EXPECT_EQ(golden_difference("run.json", text), "").
std::string golden_difference(const std::string& name, std::string_view actual);

}  // namespace flyball
