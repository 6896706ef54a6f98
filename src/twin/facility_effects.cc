#include "twin/facility_effects.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace flyball::twin {

FacilityEffects::FacilityEffects(std::vector<FacilityFault> faults, std::vector<HarmlessEvent> harmless)
    : faults_(std::move(faults)), harmless_(std::move(harmless)) {}

void FacilityEffects::move_to(WallTime t) {
  now_ = t;
  sizes_.fill(0);
  active_.clear();
  events_.clear();
  software_ = 0;
  for (const FacilityFault& fault : faults_) {
    if (fault.cause() == Cause::firmware && t >= fault.onset) ++software_;
    const double share = fault.share_at(t);
    if (share <= 0) continue;
    active_.push_back({&fault, share});
    sizes_[static_cast<std::size_t>(fault.form)] += share * fault.size;
  }
  for (const HarmlessEvent& event : harmless_) {
    if (event.kind == HarmlessKind::software_update && t >= event.onset) ++software_;
    if (t >= event.onset && t < event.onset + event.duration) events_.push_back(&event);
  }
}

double FacilityEffects::size(FaultForm form, std::string_view job_type) const {
  double sum = 0;
  for (const Active& each : active_) {
    if (each.fault->form == form && (each.fault->where.empty() || each.fault->where == job_type))
      sum += each.share * each.fault->size;
  }
  return sum;
}

double FacilityEffects::recirculation(std::uint32_t rack) const {
  double sum = 0;
  for (const Active& each : active_) {
    const FacilityFault& fault = *each.fault;
    if (fault.form == FaultForm::recirculation && rack >= fault.first && rack < fault.first + fault.count)
      sum += each.share * fault.size;
  }
  return sum;
}

bool FacilityEffects::drained(std::uint32_t rack) const {
  return std::any_of(events_.begin(), events_.end(), [rack](const HarmlessEvent* event) {
    return event->kind == HarmlessKind::rack_drained && rack >= event->first && rack < event->first + event->count;
  });
}

const HarmlessEvent* FacilityEffects::event(HarmlessKind kind) const {
  const auto found =
      std::find_if(events_.begin(), events_.end(), [kind](const HarmlessEvent* event) { return event->kind == kind; });
  return found == events_.end() ? nullptr : *found;
}

double FacilityEffects::front() const {
  double kelvins = 0;
  for (const HarmlessEvent* event : events_) {
    if (event->kind != HarmlessKind::weather_front) continue;
    kelvins += event->size * std::sin(std::numbers::pi * ((now_ - event->onset) / event->duration));
  }
  return kelvins;
}

}  // namespace flyball::twin
