// What is believed of each channel before anything is seen, and what is nobody's fault.
#include <algorithm>
#include <cmath>

#include "facility/channels.h"

namespace flyball::facility {

double ChannelFrame::middle_of(Quantity quantity) const {
  const double m = middle_[static_cast<std::size_t>(quantity)];
  return std::isfinite(m) && m > 0 ? m : 1.0;
}

bool ChannelFrame::metered(Channel channel) const {
  using Q = Quantity;
  const auto have = [&](std::initializer_list<Q> quantities) {
    return std::all_of(quantities.begin(), quantities.end(),
                       [&](Q each) { return std::isfinite(middle_[static_cast<std::size_t>(each)]); });
  };
  const bool air = have({Q::wet_bulb}) || have({Q::dry_bulb});
  switch (channel) {
    case Channel::supply_error:
      return have({Q::supply, Q::set_point}) && air;
    case Channel::chillers:
    case Channel::fans:
      return have({channel == Channel::fans ? Q::fans : Q::chillers}) && air;
    case Channel::chillers_on:
    case Channel::chiller_switches:
      return have({Q::chillers_on}) && air;
    case Channel::fan_speed:
      return have({Q::fan_speed});
    case Channel::pumps:
      return have({Q::pumps});
    case Channel::pump_speed:
      return have({Q::pump_speed});
    case Channel::temperature_rise:
      return have({Q::back, Q::supply});
    case Channel::gpu_power:
      return have({Q::gpu_power});
    case Channel::gpu_clock:
      return have({Q::gpu_clock});
    case Channel::tokens:
      return told_tokens_;
    case Channel::utilisation:
    case Channel::utilisation_scatter:
      return told_utilisation_;
    case Channel::loss_progress:
      return told_loss_;
    default:  // the first reading shows it
      return false;
  }
}

std::vector<double> ChannelFrame::prior_sd(Channel channel) const {
  const double h = heat_middle_;
  const auto counted = [&](Quantity quantity) -> std::size_t {
    return std::isfinite(middle_[static_cast<std::size_t>(quantity)]) ? 1 : 0;
  };
  switch (channel) {
    case Channel::balance: {
      std::vector<double> sd(30, 0.02 * h);
      std::fill_n(sd.end() - 3, 3, 0.006 * h);
      sd[0] = sd[1] = 0.3 * h;
      sd[2] = 0.1 * h;
      return sd;
    }
    case Channel::ups_loss:
    case Channel::delivery_loss:
      return {0.2 * h, 0.2 * h, 0.1 * h};
    case Channel::rack_sum: {
      // A meter of class 1, and what no rack's meter sees.
      std::vector<double> sd(kGroups, 0.01 * h);
      sd.push_back(0.2 * h);
      return sd;
    }
    case Channel::gpu_sum:
      return {2 * h, 1 * h, 0.3 * h, 0.5 * h, 0.05 * h};
    case Channel::balance_scatter:
    case Channel::ups_scatter:
    case Channel::delivery_scatter:
    case Channel::rack_scatter:
    case Channel::gpu_scatter: {
      std::vector<double> sd(kSlots, 2);
      sd.insert(sd.end(), {20, 2, 0.5});
      return sd;
    }
    case Channel::chillers_jitter:
    case Channel::pumps_jitter:
    case Channel::fans_jitter:
      return {20};
    case Channel::set_point:
      return {50};
    case Channel::pumps: {
      const std::size_t more =
          3 * counted(Quantity::racks) + 3 * counted(Quantity::pump_speed) + 2 * counted(Quantity::chillers_on);
      return std::vector<double>(4 + more, 0.05 * h);
    }
    case Channel::gpu_power: {
      std::vector<double> sd(kSlots, 2 * middle_of(Quantity::gpu_power));
      sd.insert(sd.end(), {2 * middle_of(Quantity::gpu_power), 0.05 * middle_of(Quantity::gpu_power)});
      return sd;
    }
    case Channel::gpu_clock:
      return std::vector<double>(kSlots + 1, 2 * middle_of(Quantity::gpu_clock));
    case Channel::ecc_rate:
      return {5 * middle_of(Quantity::ecc_rate)};
    case Channel::link_rate:
      return {5 * middle_of(Quantity::link_rate)};
    case Channel::voltage:
      return {3 * middle_of(Quantity::voltage), 0.1 * middle_of(Quantity::voltage)};
    default:
      return {5};
  }
}

double ChannelFrame::least_sd(Channel channel) const {
  const double h = heat_middle_;
  switch (channel) {
    case Channel::balance:
    case Channel::ups_loss:
    case Channel::delivery_loss:
    case Channel::rack_sum:
    case Channel::pumps:
      return 1e-4 * h;
    case Channel::chillers:
    case Channel::fans:
      return 3e-4 * h;
    case Channel::chillers_on:
      return 0.15;
    case Channel::gpu_sum:
      return 3e-4 * h;
    case Channel::set_point:
    case Channel::supply_error:
    case Channel::temperature_rise:
    case Channel::inlet_level:
    case Channel::inlet_pattern:
    case Channel::gpu_temperature:
      return 0.03;
    case Channel::fan_speed:
    case Channel::pump_speed:
      return 0.002;
    case Channel::gpu_power:
      return 5e-4 * middle_of(Quantity::gpu_power);
    case Channel::gpu_clock:
      return 5e-4 * middle_of(Quantity::gpu_clock);
    case Channel::ecc_rate:
    case Channel::link_rate: {
      // One count a block.
      constexpr double kBlock = 600;
      return 1 / kBlock;
    }
    case Channel::tokens:
    case Channel::utilisation:
    case Channel::utilisation_scatter:
    case Channel::shared:
    case Channel::gpu_throttled:
      return 0.002;
    case Channel::voltage:
      return 3e-4 * middle_of(Quantity::voltage);
    case Channel::chiller_switches:
      return 0.15;
    case Channel::restarts:
      return 0.03;  // one in a week
    default:
      return 0.05;
  }
}

double ChannelFrame::least_shift(Channel channel) const {
  const double h = heat_middle_;
  switch (channel) {
    case Channel::balance:
    case Channel::ups_loss:
    case Channel::delivery_loss:
      return 3e-4 * h;
    case Channel::rack_sum:
    case Channel::gpu_sum:
      return 1.5e-3 * h;
    case Channel::chillers:
    case Channel::fans:
      return 1e-3 * h;
    case Channel::pumps:
      return 5e-4 * h;
    case Channel::set_point:
    case Channel::supply_error:
    case Channel::temperature_rise:
      return 0.2;
    case Channel::inlet_level:
      return 0.06;
    case Channel::inlet_pattern:
      return 0.3;
    case Channel::chillers_on:
      return 0.1;
    case Channel::balance_scatter:
    case Channel::ups_scatter:
    case Channel::delivery_scatter:
    case Channel::rack_scatter:
    case Channel::gpu_scatter:
      return 0.3;
    case Channel::chillers_jitter:
    case Channel::pumps_jitter:
    case Channel::fans_jitter:
      return 0.6;
    case Channel::chiller_switches:
      return 0.05;
    case Channel::fan_speed:
    case Channel::pump_speed:
      return 0.01;
    case Channel::gpu_power:
    case Channel::gpu_clock:
      return 4e-3 * middle_of(channel == Channel::gpu_power ? Quantity::gpu_power : Quantity::gpu_clock);
    case Channel::gpu_temperature:
      return 0.5;
    case Channel::tokens:
      return 0.06;
    case Channel::utilisation:
    case Channel::utilisation_scatter:
      return 0.01;
    case Channel::loss_progress:
      return 0.2;
    case Channel::voltage:
      return 4e-3 * middle_of(Quantity::voltage);
    case Channel::newcomer:
    case Channel::shared:
      return 0.01;
    default:
      return 0;
  }
}

std::optional<NeighbourRule> ChannelFrame::neighbours(Channel channel) const {
  // Of the load, of where it is, in K of wet bulb, of running chillers. Two chillers that share the heat are never like
  // one that has it all; towers hardly tell them apart.
  constexpr double kLoad = 0.04, kPlace = 0.03, kAir = 0.8, kOn = 0.15, kOnOfTowers = 0.3;
  const double least = least_sd(channel);
  switch (channel) {
    case Channel::supply_error:
    case Channel::chillers_on:
    case Channel::chiller_switches:
    case Channel::gpu_temperature:
      return NeighbourRule{{kLoad, kPlace, kAir}, least, 0};
    case Channel::fans:
      return NeighbourRule{{kLoad, kPlace, kAir, kOnOfTowers}, least, 0.01};
    case Channel::chillers: {
      // Like chillers differ by a few percent, and which of them leads changes.
      constexpr double kAlike = 0.02;
      if (std::isfinite(middle_[static_cast<std::size_t>(Quantity::chillers_on)]))
        return NeighbourRule{{kLoad, kPlace, kAir, kOn}, least, kAlike};
      return NeighbourRule{{kLoad, kPlace, kAir}, least, kAlike};
    }
    case Channel::fan_speed:
    case Channel::pump_speed:
    case Channel::temperature_rise:
    case Channel::inlet_level:
      return NeighbourRule{{kLoad, kPlace}, least, 0};
    default:
      return std::nullopt;
  }
}

bool ChannelFrame::only_context(Channel channel) {
  return channel == Channel::newcomer || channel == Channel::loss_progress || channel == Channel::temperature_rise ||
         channel == Channel::inlet_level;
}

bool ChannelFrame::counted(Channel channel) { return channel == Channel::restarts; }

bool ChannelFrame::rare(Channel channel) {
  return channel == Channel::chiller_switches || channel == Channel::restarts || channel == Channel::shared ||
         channel == Channel::newcomer || channel == Channel::gpu_throttled || channel == Channel::ecc_rate ||
         channel == Channel::repeats;
}

}  // namespace flyball::facility
