#pragma once
// An account as people and scripts read it: the same keys and the same derived numbers in every document.

#include <string>
#include <vector>

#include "core/result_types.h"
#include "report/json.h"
#include "report/table.h"

namespace flyball::report {

/// energy_j, duration_s, mean_power_w, tokens, tokens_per_mwh, wh_per_1000_tokens, cost, currency, carbon_g,
/// coverage_fraction, scope, method. What cannot be derived (no tokens, no duration) is null. Nothing but energy is
/// known of an account without coverage, so its energy is null too.
Json to_json(const Account& account, const std::string& currency = {});

/// Adds the same keys to `into`. `bridged`: time that is not covered and yet has energy, for the mean power.
void add_account(Json& into, const Account& account, const std::string& currency = {}, Seconds bridged = {});

/// One column of values for each account, one row for each quantity.
Table account_table(const std::vector<std::string>& titles, const std::vector<Account>& accounts,
                    const std::string& currency = {}, const std::vector<Seconds>& bridged = {});

}  // namespace flyball::report
