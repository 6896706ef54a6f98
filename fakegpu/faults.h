#pragma once
// Faults of a board as the library acts them out: what stands in the fault part of its record.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fakegpu/page.h"

namespace flyball::fakegpu {

/// "power", "set_limit", …; "setters" and "all" are several.
Result<std::vector<fg_call>> parse_calls(std::string_view name);
/// "NO_PERMISSION" or a number up to 65535.
Result<std::uint16_t> parse_return_code(std::string_view name);

/// "No value" as NVML says it in 32 bits.
constexpr std::uint32_t kSentinel = 0xffffffffU;

/// The faults of one board's calls. Copied into its record with each publication.
class CallFaults {
 public:
  void force_code(fg_call call, std::uint16_t code) { codes_[call] = code; }
  void hang(fg_call call) { modes_[call] = FG_FAULT_HANG; }
  void show_value(fg_call call, std::uint32_t value) { modes_[call] = FG_FAULT_VALUE, values_[call] = value; }
  /// The entry of `field` alone: its own code, or a value in the wrong member of the union. At most
  /// FG_MAX_FIELD_FAULTS fields.
  Result<> break_field(std::uint32_t field, std::uint16_t code, bool poison);
  void clear() { *this = {}; }
  void write(fg_gpu& record) const;

 private:
  std::uint16_t codes_[FG_CALLS] = {};
  std::uint8_t modes_[FG_CALLS] = {};
  std::uint32_t values_[FG_CALLS] = {};
  fg_field_fault fields_[FG_MAX_FIELD_FAULTS] = {};
};

}  // namespace flyball::fakegpu
