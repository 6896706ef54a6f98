#pragma once
// A scenario of the twin as a subject of evaluation.

#include "evaluate/plant.h"
#include "twin/scenario.h"

namespace flyball::evaluate {

/// The truth curve is measured on the twin itself, in hindsight: one simulated hour at each limit of a grid of 10 W (at
/// most 40 limits), all with the first seed, made monotone; and one at each locked clock. Deterministic.
Result<Subject> twin_subject(const twin::Scenario& scenario, std::uint64_t seed);

}  // namespace flyball::evaluate
