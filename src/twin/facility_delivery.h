#pragma once
// What power delivery loses between the utility and the racks. Equations: doc/twin.md.

#include "base/random.h"
#include "base/units.h"
#include "twin/facility_effects.h"
#include "twin/facility_parameters.h"

namespace flyball::twin {

/// Means over a step.
struct DeliveryStep {
  double pdu_loss_w = 0, ups_out_w = 0, ups_loss_w = 0, ups_in_w = 0;
  double discharged_w = 0;  ///< from the batteries; negative: they charge
  double voltage_fraction = 1;
  bool on_battery = false;
};

class Delivery {
 public:
  Delivery(const DeliveryParameters& parameters, Random random) : p_(parameters), random_(random) {}

  const DeliveryStep& step(double it_w, const FacilityEffects& effects, Seconds time);
  double transformer_loss_w(double output_w) const;
  double voltage_fraction() const { return now_.voltage_fraction; }

 private:
  double ups_loss_w(double output_w, const FacilityEffects& effects) const;

  const DeliveryParameters& p_;
  Random random_;
  double wander_ = 0;
  double owed_j_ = 0;  ///< to the batteries
  DeliveryStep now_;
};

}  // namespace flyball::twin
