#include "report/account_view.h"

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace flyball::report {
namespace {

bool measured(const Account& account) { return account.coverage_fraction > 0; }
bool has_power(const Account& account) { return measured(account) && account.duration > Seconds(0); }
bool has_tokens(const Account& account) { return measured(account) && account.tokens > 0; }

Watts mean_power(const Account& account, Seconds bridged) {
  return bridged > Seconds(0) ? account.energy / (account.duration * account.coverage_fraction + bridged)
                              : account.mean_power();
}

Json value_if(bool known, double value) { return known ? number(value) : Json(nullptr); }
std::string text_if(bool known, std::string text) { return known ? std::move(text) : "–"; }

std::string energy_text(Joules energy) {
  const double kwh = energy.value() / kJoulesPerKilowattHour;
  return fmt::format("{} ({} kWh)", format(energy), kwh < 1000 ? fmt::format("{:.3f}", kwh) : format_count(kwh));
}

}  // namespace

void add_account(Json& into, const Account& account, const std::string& currency, Seconds bridged) {
  into["energy_j"] = value_if(measured(account), account.energy.value());
  into["duration_s"] = number(account.duration.value());
  into["mean_power_w"] = value_if(has_power(account), mean_power(account, bridged).value());
  into["tokens"] = number(account.tokens);
  into["tokens_per_mwh"] = value_if(has_tokens(account), account.tokens_per_mwh());
  into["wh_per_1000_tokens"] = value_if(has_tokens(account), account.wh_per_1000_tokens());
  into["cost"] = value_if(measured(account) && account.cost != 0, account.cost);
  into["currency"] = currency.empty() ? Json(nullptr) : text(currency);
  into["carbon_g"] = value_if(measured(account) && account.carbon_g != 0, account.carbon_g);
  into["coverage_fraction"] = number(account.coverage_fraction);
  into["scope"] = std::string(to_string(account.scope));
  into["method"] = text(account.method);
}

Json to_json(const Account& account, const std::string& currency) {
  Json made = Json::object();
  add_account(made, account, currency);
  return made;
}

Table account_table(const std::vector<std::string>& titles, const std::vector<Account>& accounts,
                    const std::string& currency, const std::vector<Seconds>& bridged) {
  Table table;
  table.columns.push_back({"", Align::left});
  for (const std::string& title : titles) table.columns.push_back({title, Align::right});
  const auto row = [&](std::string name, const std::function<std::string(const Account&)>& show) {
    std::vector<std::string> cells = {std::move(name)};
    for (const Account& account : accounts) cells.push_back(show(account));
    table.rows.push_back(std::move(cells));
  };
  row("Energy", [](const Account& a) { return text_if(measured(a), energy_text(a.energy)); });
  row("Duration", [](const Account& a) { return format(a.duration); });
  row("Mean power", [&](const Account& a) {
    const auto number = static_cast<std::size_t>(&a - accounts.data());
    const Seconds more = number < bridged.size() ? bridged[number] : Seconds(0);
    return text_if(has_power(a), format(mean_power(a, more)));
  });
  row("Tokens", [](const Account& a) { return format_count(a.tokens); });
  row("Tokens per MWh", [](const Account& a) { return text_if(has_tokens(a), format_count(a.tokens_per_mwh())); });
  row("Wh per 1,000 tokens",
      [](const Account& a) { return text_if(has_tokens(a), fmt::format("{:.4g}", a.wh_per_1000_tokens())); });
  row("Cost", [&](const Account& a) {
    return text_if(measured(a) && a.cost != 0, fmt::format("{:.{}f} {}", a.cost, a.cost < 10 ? 4 : 2, currency));
  });
  row("Carbon", [](const Account& a) {
    return text_if(measured(a) && a.carbon_g != 0, fmt::format("{:.3f} kgCO2e", a.carbon_g / 1000));
  });
  row("Measured share of the time", [](const Account& a) { return flyball::format_percent(a.coverage_fraction, 1); });
  row("Scope", [](const Account& a) { return std::string(to_string(a.scope)); });
  row("Method", [](const Account& a) { return a.method; });
  return table;
}

}  // namespace flyball::report
