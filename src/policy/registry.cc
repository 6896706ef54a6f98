#include <utility>

#include "base/text.h"
#include "policy/bandit.h"
#include "policy/fixed.h"
#include "policy/model.h"
#include "policy/pi.h"
#include "policy/policy.h"
#include "policy/sweep.h"
#include "policy/utilisation.h"
#include "policy/within_budget.h"

namespace flyball::policy {
namespace {

constexpr std::string_view kStatic = "static:", kMix = "mix:", kBudget = "budget:";

std::string known_forms() {
  std::string text;
  for (const Description& description : descriptions()) {
    if (!text.empty()) text += ", ";
    text += description.form;
  }
  return text;
}

Result<std::unique_ptr<Policy>> make_static(std::string_view argument) {
  auto limit = parse_watts(argument);
  if (!limit) return fail(ErrorCode::input, limit.error().what, "--policy static", "write static:250W");
  if (*limit <= Watts(0)) {
    return fail(ErrorCode::input, "a limit of " + format(*limit) + " is not above 0 W", "--policy static");
  }
  return std::make_unique<Static>(Milliwatts::from(*limit), std::string(kStatic) + std::string(argument));
}

Result<std::unique_ptr<Policy>> make_mix(std::string_view argument) {
  const auto parts = split(argument, ',');
  const auto malformed = [] {
    return fail(ErrorCode::input, "a mix is two limits and the share of the second", "--policy mix",
                "write mix:250W,200W,0.4");
  };
  if (parts.size() != 3) return malformed();
  const auto first = parse_watts(parts[0]), second = parse_watts(parts[1]);
  const auto share = parse_fraction(parts[2]);
  if (!first || !second || !share || *first <= Watts(0) || *second <= Watts(0) || !(*share >= 0 && *share <= 1)) {
    return malformed();
  }
  return std::make_unique<Mix>(Milliwatts::from(*first), Milliwatts::from(*second), *share,
                               std::string(kMix) + std::string(argument));
}

Result<std::unique_ptr<Policy>> make_within_budget(std::string_view argument, const Objective& objective) {
  const std::size_t colon = argument.find(':');
  const auto budget = parse_watts(argument.substr(0, colon));
  if (!budget || colon == std::string_view::npos || *budget <= Watts(0)) {
    return fail(ErrorCode::input, "a budget is a power above 0 W and the policy within it", "--policy budget",
                "write budget:2.4kW:model");
  }
  const std::string_view inner = argument.substr(colon + 1);
  if (inner.substr(0, kBudget.size()) == kBudget) {
    return fail(ErrorCode::input, "a budget within a budget", "--policy budget", "name the smaller one");
  }
  FLYBALL_ASSIGN(auto policy, make(inner, objective));
  return std::make_unique<WithinBudget>(*budget, std::move(policy), std::string(kBudget) + std::string(argument));
}

}  // namespace

std::vector<Description> descriptions() {
  return {
      {"none", "leaves every limit as it was found; what all others are compared with"},
      {"static:WATTS", "one limit for every GPU, from the first decision to the last"},
      {"mix:WATTS,WATTS,SHARE", "two limits in turn, the second for that share of the time"},
      {"budget:WATTS:POLICY", "another policy within a budget for all limits together: run --budget"},
      {"sweep", "tries each limit for a while, then keeps the best one that the objective allows"},
      {"model", "learns the job's own curve and spends the loss it may cause where it saves most"},
      {"slack",
       "model with locked clocks where the site declares them unlocked, and ranks that wait for others slowed"},
      {"threshold", "25 W less while a GPU is used less than 80 %, else the limit found"},
      {"hysteresis", "25 W less below 70 % of utilisation, 25 W more above 90 %, as it is in between"},
      {"utilisation", "the limit found times the GPU's utilisation"},
      {"pi", "a PI controller from the measured loss to the loss allowed; needs --max-loss"},
      {"bandit", "Thompson sampling with forgetting over limits 25 W apart"},
  };
}

Result<std::unique_ptr<Policy>> make(std::string_view spec, const Objective& objective) {
  if (spec == "none") return std::make_unique<None>();
  if (spec.substr(0, kStatic.size()) == kStatic) return make_static(spec.substr(kStatic.size()));
  if (spec.substr(0, kMix.size()) == kMix) return make_mix(spec.substr(kMix.size()));
  if (spec.substr(0, kBudget.size()) == kBudget) return make_within_budget(spec.substr(kBudget.size()), objective);
  if (spec == "oracle") {
    return fail(ErrorCode::unsupported, "the oracle is hindsight: it knows the job's curve beforehand",
                "--policy oracle", "only a twin has one to know: flyball run on the twin, or flyball evaluate");
  }
  if (spec == "sweep") return Sweep::make(objective);
  if (spec == "model") return Model::make(objective);
  if (spec == "slack") return Model::make_slack(objective);
  if (spec == "threshold") return std::make_unique<UtilisationSteps>(UtilisationSteps::threshold());
  if (spec == "hysteresis") return std::make_unique<UtilisationSteps>(UtilisationSteps::hysteresis());
  if (spec == "utilisation") return std::make_unique<UtilisationProportional>();
  if (spec == "pi") return Pi::make(objective);
  if (spec == "bandit") return Bandit::make(objective);
  return fail(ErrorCode::input, "'" + std::string(spec.substr(0, 60)) + "' is not a policy", "--policy",
              "known are " + known_forms());
}

}  // namespace flyball::policy
