// flyball-fakegpu: owner of the fake GPUs, and the client that sets their faults.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/text.h"
#include "fakegpu/control.h"
#include "fakegpu/page.h"

namespace flyball::fakegpu {
namespace {

volatile std::sig_atomic_t stop_signal = 0;
void on_signal(int signal) { stop_signal = signal; }

struct Options {
  std::string page = default_page_path();
  std::string preset = "h100-sxm5-80gb";
  std::uint32_t gpus = 8;
  std::uint64_t seed = 1;
  double speed = 1;
  std::vector<std::string> settings;
  bool paused = false;
};

constexpr Seconds kTick(0.02);  // finer than the twin's own: clients read at any time

Result<twin::MachineParameters> parameters_of(const Options& options) {
  twin::MachineParameters p;
  FLYBALL_ASSIGN(p.gpu, twin::gpu_preset(options.preset));
  p.gpus = options.gpus;
  p.seed = options.seed;
  p.speed = options.speed;
  p.tick = kTick;
  for (const std::string& setting : options.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      return fail(ErrorCode::input, fmt::format("'{}' is not KEY=VALUE", setting), "--set", "write gpu.idle_power=60W");
    }
    FLYBALL_TRY(twin::set_parameter(p, setting.substr(0, equals), setting.substr(equals + 1)));
  }
  return p;
}

Result<> own(const Options& options) {
  FLYBALL_ASSIGN(const twin::MachineParameters parameters, parameters_of(options));
  FLYBALL_ASSIGN(const BoardKind kind, board_kind(options.preset));
  FLYBALL_ASSIGN(twin::Machine machine, twin::Machine::create(parameters));
  FLYBALL_ASSIGN(const auto page, PageOwner::create(options.page, static_cast<std::uint32_t>(parameters.gpus)));
  FLYBALL_ASSIGN(const auto control, ControlServer::listen(control_path(options.page)));
  Node node(std::move(machine), kind, *page, SystemClock().wall());
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  node.publish();
  page->set_state(FG_READY);
  fmt::print("{}\n", options.page);  // whoever started us may read on: the page is there
  std::fflush(stdout);
  log::info("fakegpu", "{} x {} at {}, speed {}{}", parameters.gpus, parameters.gpu.name, options.page,
            parameters.speed, options.paused ? ", paused" : "");
  Result<> served = serve(node, *page, *control, options.paused, stop_signal);
  page->remove();
  return served;
}

/// Numbers for a person: one line a GPU.
void print_status(const nlohmann::json& status) {
  fmt::print("{}: {} at {:.1f} s; job {}, step {}, {} tokens\n", status["page"].get<std::string>(),
             status["preset"].get<std::string>(), status["time_s"].get<double>(),
             status["job"]["phase"].get<std::string>(), status["job"]["steps"].get<std::uint64_t>(),
             status["job"]["tokens"].get<std::uint64_t>());
  for (const auto& g : status["gpus"]) {
    fmt::print("{} {:>8} of {:>8} enforced, {} MHz, {:.0f} °C, throttle: {}{}\n", g["uuid"].get<std::string>(),
               format(Watts(g["true_power_w"].get<double>())),
               format(Milliwatts(g["limit_enforced_mw"].get<std::int64_t>())),
               std::lround(g["sm_clock_hz"].get<double>() / 1e6), g["temperature_celsius"].get<double>(),
               g["throttle"].get<std::string>(), g["lost"].get<bool>() ? ", lost" : "");
  }
}

int report(const Error& error) {
  log::error("fakegpu", "{}", error.message());
  return error.exit_code();
}

int ask(const Options& options, const Words& words) {
  const auto answer = send_command(control_path(options.page), words);
  if (!answer) return report(answer.error());
  fmt::print("{}\n", *answer);
  return 0;
}

int show_status(const Options& options, bool json) {
  const auto answer = send_command(control_path(options.page), {"status"});
  if (!answer) return report(answer.error());
  if (json) {
    fmt::print("{}\n", *answer);
  } else {
    print_status(nlohmann::json::parse(*answer));
  }
  return 0;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Owns fake GPUs behind a fake libnvidia-ml.so.1; without a command, runs until stopped");
  app.add_option("--page", options.page, "Page file; also FLYBALL_FAKEGPU")->capture_default_str();
  app.add_option("--preset", options.preset, "Board: " + fmt::format("{}", fmt::join(twin::gpu_preset_names(), " ")))
      ->capture_default_str();
  app.add_option("--gpus", options.gpus, fmt::format("How many, 1 to {}", FG_MAX_GPUS))->capture_default_str();
  app.add_option("--seed", options.seed, "Of boards and noise")->capture_default_str();
  app.add_option("--speed", options.speed, "Of job progress and heat only, 1 to 50")->capture_default_str();
  app.add_option("--set", options.settings, "KEY=VALUE of the twin, may be repeated")->allow_extra_args(false);
  app.add_flag("--paused", options.paused, "Time moves by `step` alone");
  app.require_subcommand(0, 1);
  app.fallthrough();
  CLI::App* fault = app.add_subcommand("fault", "Set a fault: fault [--gpu UUID|INDEX|all] KIND …");
  std::vector<std::string> kind;
  std::string board;
  fault->add_option("kind", kind, "Kind and its arguments")->required();
  fault->add_option("--gpu", board, "UUID, index or all");
  std::string duration;
  CLI::App* step = app.add_subcommand("step", "Advance time: step 10s");
  step->add_option("duration", duration)->required();
  bool json = false;
  CLI::App* status = app.add_subcommand("status", "The truth about the boards, to compare readings with");
  status->add_flag("--json", json);
  CLI::App* jobs = app.add_subcommand("jobs", "The job that runs on them");
  CLI::App* stop = app.add_subcommand("stop", "End the owner");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ErrorCode::input);
  }
  if (*fault) {
    Words words{"fault"};
    words.insert(words.end(), kind.begin(), kind.end());
    if (!board.empty()) words.insert(words.end(), {"--gpu", board});
    return ask(options, words);
  }
  // A bare number is seconds here, as in `step 10`.
  if (*step) return ask(options, {"step", parse_double(duration) ? duration + "s" : duration});
  if (*status) return show_status(options, json);
  if (*jobs) return ask(options, {"jobs"});
  if (*stop) return ask(options, {"stop"});
  const auto served = own(options);
  if (!served) return report(served.error());
  return stop_signal != 0 ? 128 + stop_signal : 0;
}

}  // namespace
}  // namespace flyball::fakegpu

int main(int argc, char** argv) { return flyball::fakegpu::run(argc, argv); }
