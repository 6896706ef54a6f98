#pragma once
// Which cause explains what has moved: a small table says of each which channels it moves, which may follow, and that
// all others stay. Where a fault moves several meters' relations, it does so in fixed proportion.

#include <array>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/facility.h"
#include "facility/channels.h"

namespace flyball::facility {

/// How far a channel lies from what it should be, over some time.
struct ChannelShift {
  bool known = false;
  double shift = 0;
  double sd = 1;  ///< of the shift
  double z = 0;   ///< mean of the blocks' own, in its sd
};
using Shifts = std::array<ChannelShift, kChannels>;

struct AttributionInput {
  Shifts shifts;
  std::array<bool, kChannels> ignored{};  ///< another finding explains them
  Channel trigger = Channel::count;       ///< must be explained
  /// How much worse (0) or better a step at the last change of the software's label tells what the trigger did than one
  /// at the onset that was found, in log likelihood. NaN: no change is near.
  double software_step = std::numeric_limits<double>::quiet_NaN();
  bool software_known = true;
  /// How much fans and pumps still change their speed, as a part of what the heat asks for. NaN: it asks for no change.
  double fans_follow = 1, pumps_follow = 1;
  /// Part of what the fans draw too much that is not in proportion to the cube of their speed: 0 = it all is.
  double fans_apart = 0;
};

struct Candidate {
  Cause cause = Cause::not_identifiable;
  std::string_view form;  ///< which of the ways in which the cause shows; stable
  double score = 0;       ///< evidence explained, in units of a log likelihood
  double probability = 0;
  std::vector<Channel> moved;      ///< by which it is known
  std::vector<Channel> following;  ///< that may move with it
};

/// Best first, one a cause; probabilities sum to 1. Empty: nothing explains the trigger.
std::vector<Candidate> attribute(const AttributionInput& input);

}  // namespace flyball::facility
