#include "twin/facility_delivery.h"

#include <algorithm>
#include <cmath>

namespace flyball::twin {

namespace {

constexpr double kVoltageDrop = 0.01;  // of the voltage, at the rating; [ashrae] feeders within 2 %
constexpr double kVoltageSd = 0.002;   // slow, of a regulated output; chosen
constexpr double kVoltageTime = 1800;  // s; chosen

}  // namespace

double Delivery::ups_loss_w(double output_w, const FacilityEffects& effects) const {
  const bool eco = p_.ups_eco != (effects.size(FaultForm::ups_eco) > 0);
  const double rating = p_.ups_rating.value();
  double strings = static_cast<double>(p_.ups_strings);
  if (effects.size(FaultForm::ups_redundancy_lost) > 0) strings = std::max(1.0, strings - 1);
  const double share = output_w / strings;
  const double idle = eco ? p_.eco_idle_fraction : p_.ups_idle_fraction;
  const double proportional = eco ? p_.eco_proportional_fraction : p_.ups_proportional_fraction;
  const double square = eco ? p_.eco_square_fraction : p_.ups_square_fraction;
  return strings * (idle * rating + proportional * share + square * share * share / rating);
}

double Delivery::transformer_loss_w(double output_w) const {
  const double rating = p_.transformer_rating.value();
  return p_.transformer_idle_fraction * rating + p_.transformer_square_fraction * output_w * output_w / rating;
}

const DeliveryStep& Delivery::step(double it_w, const FacilityEffects& effects, Seconds time) {
  const double keep = std::exp(-time.value() / kVoltageTime);
  wander_ = keep * wander_ + std::sqrt(1 - keep * keep) * random_.normal();
  const double rating = p_.pdu_rating.value();
  now_.voltage_fraction =
      (1 - kVoltageDrop * it_w / rating) * (1 + kVoltageSd * wander_) * (1 - effects.size(FaultForm::sag));
  // Constant power at less voltage is more current.
  const double current = it_w / now_.voltage_fraction;
  now_.pdu_loss_w = p_.pdu_idle_fraction * rating + p_.pdu_square_fraction * current * current / rating;
  now_.ups_out_w = it_w + now_.pdu_loss_w;
  now_.ups_loss_w = ups_loss_w(now_.ups_out_w, effects);
  now_.on_battery = effects.event(HarmlessKind::ups_test) != nullptr;
  if (now_.on_battery) {
    now_.discharged_w = now_.ups_out_w + now_.ups_loss_w;
    owed_j_ += now_.discharged_w * time.value();
  } else {
    const double charge = std::min(p_.battery_charge.value(), owed_j_ / time.value());
    now_.discharged_w = -charge;
    owed_j_ -= charge * time.value();
  }
  now_.ups_in_w = now_.ups_out_w + now_.ups_loss_w - now_.discharged_w;
  return now_;
}

}  // namespace flyball::twin
