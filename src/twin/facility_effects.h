#pragma once
// Which faults and events hold at a time, and how large they are. Part of the building's simulation.

#include <array>
#include <string_view>
#include <vector>

#include "twin/facility_fault.h"

namespace flyball::twin {

class FacilityEffects {
 public:
  FacilityEffects(std::vector<FacilityFault> faults, std::vector<HarmlessEvent> harmless);

  void move_to(WallTime t);
  WallTime now() const { return now_; }
  /// Sum over the faults of that form, each as far as it is there; 0: none.
  double size(FaultForm form) const { return sizes_[static_cast<std::size_t>(form)]; }
  /// Of those that say this type of job, or none.
  double size(FaultForm form, std::string_view job_type) const;
  /// K by which the inlet of a rack is warmer.
  double recirculation(std::uint32_t rack) const;
  bool drained(std::uint32_t rack) const;
  /// The event of that kind that holds now, if any.
  const HarmlessEvent* event(HarmlessKind kind) const;
  /// K added to the weather: rises and falls with the front, at most its size.
  double front() const;
  /// Grows with each update of software, with or without an effect.
  std::uint32_t software_version() const { return software_; }

  struct Active {
    const FacilityFault* fault;
    double share;
  };
  const std::vector<Active>& active() const { return active_; }

 private:
  std::vector<FacilityFault> faults_;
  std::vector<HarmlessEvent> harmless_;
  std::vector<Active> active_;
  std::vector<const HarmlessEvent*> events_;
  static constexpr std::size_t kForms = static_cast<std::size_t>(FaultForm::meter_noisy) + 1;
  std::array<double, kForms> sizes_{};
  WallTime now_;
  std::uint32_t software_ = 0;
};

}  // namespace flyball::twin
