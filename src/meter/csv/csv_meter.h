#pragma once
// A file that some collector writes: its last complete row is the reading.

#include <memory>

#include "meter/meter.h"
#include "meter/profile.h"

namespace flyball::meter {

/// A cell as a number of the point's unit, which may stand behind it ("230.1 V"). Comma decimals, "[N/A]" and words
/// are errors that say so.
Result<double> csv_number(std::string_view cell, std::string_view unit);

std::unique_ptr<Meter> make_csv_meter(const Profile& profile, Clock& clock);

}  // namespace flyball::meter
