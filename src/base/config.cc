#include "base/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "base/config_scan.h"
#include "base/names.h"
#include "base/text.h"

// The parser is compiled in here, with its assertions off: it asserts on input, and input must not end the program.
#undef TOML_SHARED_LIB
#undef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

namespace flyball {
namespace {

constexpr std::size_t kMostFaults = 50;

/// What each type is called, and what a value of it looks like.
struct TypeName {
  std::string_view name;
  std::string_view example;
  std::string_view unit;
};

TypeName type_name(ConfigType type) {
  switch (type) {
    case ConfigType::power:
      return {"a power", "\"400W\" or \"2.4kW\"", "W"};
    case ConfigType::duration:
      return {"a duration", "\"10s\", \"30min\" or \"6h\"", "s"};
    case ConfigType::frequency:
      return {"a frequency", "\"1410MHz\"", "Hz"};
    case ConfigType::fraction:
      return {"a fraction", "0.012 or \"1.2%\"", ""};
    case ConfigType::number:
      return {"a number", "0.25", ""};
    case ConfigType::whole:
      return {"a whole number", "5", ""};
    case ConfigType::flag:
      return {"true or false", "true", ""};
    case ConfigType::text:
      return {"a string", "\"name\"", ""};
    case ConfigType::texts:
      return {"a list of strings", R"(["a", "b"])", ""};
  }
  return {};
}

bool has_unit(ConfigType type) { return !type_name(type).unit.empty(); }

std::string quoted(std::string_view text) {
  std::string escaped = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped + '"';
}

/// A value in the base unit as a file would say it.
std::string shown_number(double value, ConfigType type) {
  const std::string_view unit = type_name(type).unit;
  return unit.empty() ? format_exact(value) : quoted(format_exact(value) + std::string(unit));
}

Result<double> number_of(std::string_view text, ConfigType type) {
  switch (type) {
    case ConfigType::power:
      return parse_watts(text).map([](Watts v) { return v.value(); });
    case ConfigType::duration:
      return parse_seconds(text).map([](Seconds v) { return v.value(); });
    case ConfigType::frequency:
      return parse_hertz(text).map([](Hertz v) { return v.value(); });
    case ConfigType::fraction:
      return parse_fraction(text);
    default:
      return parse_double(text);
  }
}

using Parts = std::vector<std::string_view>;

/// Whether a path with "*" in it names `parts`.
bool matches(std::string_view pattern, const Parts& parts) {
  const Parts wanted = split(pattern, '.');
  if (wanted.size() != parts.size()) return false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (wanted[i] != "*" && wanted[i] != parts[i]) return false;
  }
  return true;
}

/// Paths are joined with dots; a name that holds dots itself would read as two.
std::string joined(const Parts& parts) {
  std::string path;
  for (const std::string_view part : parts) {
    if (!path.empty()) path += '.';
    path += part;
  }
  return path;
}

}  // namespace

/// Walks what the parser made of the file and collects values and faults.
class ConfigReader {
 public:
  ConfigReader(std::span<const ConfigKey> keys, std::string name) : name_(std::move(name)) { config_.keys_ = keys; }

  Config::Partial read(std::string_view text) {
    if (auto faults = scan_config(text, name_, kMostFaults); !faults.empty())
      return {config_, std::move(faults), false};
    std::string rest(text);
    bool readable = false;
    for (;;) {
      const toml::parse_result parsed = toml::parse(rest);
      if (parsed) {
        Parts parts;
        walk(parsed.table(), parts);
        readable = true;
        break;
      }
      add(parsed.error().source(), {}, "the line is not TOML: " + std::string(parsed.error().description()), {});
      if (faults_.size() == kMostFaults || !leave_out(rest, parsed.error().source().begin.line)) break;
    }
    std::vector<Error> faults = errors_by_line();
    return {std::move(config_), std::move(faults), readable};
  }

 private:
  struct Fault {
    std::uint32_t line;
    Error error;
  };

  /// The parser stops at its first fault. A line "key = value" by itself is left out, to see what else there is; behind
  /// any other a fault could be one that the first one made.
  bool leave_out(std::string& text, std::size_t number) {
    std::size_t begin = 0, seen = 0;
    std::string section;
    for (const std::string_view each : split(text, '\n')) {
      const std::string_view line = trim(each);
      if (++seen < number) {
        if (line.starts_with('[')) section = header_path(line);
        begin += each.size() + 1;
        continue;
      }
      const auto equals = line.find('=');
      if (equals == std::string_view::npos || line.front() == '[' || begins_in_brackets(text, number)) return false;
      std::string key(trim(line.substr(0, equals)));
      std::erase_if(key, [](char c) { return c == '"' || c == '\''; });
      config_.refused_.insert(section.empty() ? key : fmt::format("{}.{}", section, key));
      text.replace(begin, each.size(), each.size(), ' ');
      return true;
    }
    return false;
  }

  /// "[point.\"a\"] # first" as a path.
  static std::string header_path(std::string_view line) {
    std::string path(trim(line.substr(1, line.find(']') - 1)));
    std::erase_if(path, [](char c) { return c == '"' || c == '\''; });
    return path;
  }

  void walk(const toml::table& table, Parts& parts) {
    for (const auto& [key, node] : table) {
      if (faults_.size() == kMostFaults) return;
      parts.push_back(key.str());
      const ConfigKey* declared = find(parts);
      if (key.str().empty() || key.str().size() > 96 || key.str().find('.') != std::string_view::npos) {
        add(key.source(), joined(parts).substr(0, 120), "a name here has 1 to 96 characters and no dot", {});
      } else if (declared != nullptr) {
        set(*declared, joined(parts), node);
      } else if (is_section(parts)) {
        const toml::table* section = node.as_table();
        if (section != nullptr) walk(*section, parts);
        if (section == nullptr) add(key.source(), joined(parts), "is a section", "write [" + joined(parts) + "] once");
      } else {
        add_unknown(key.source(), parts);
      }
      parts.pop_back();
    }
  }

  const ConfigKey* find(const Parts& parts) const {
    for (const ConfigKey& key : config_.keys_) {
      if (matches(key.path, parts)) return &key;
    }
    return nullptr;
  }

  bool is_section(const Parts& parts) const {
    return std::any_of(config_.keys_.begin(), config_.keys_.end(), [&](const ConfigKey& key) {
      Parts wanted = split(key.path, '.');
      if (wanted.size() <= parts.size()) return false;
      wanted.resize(parts.size());
      return matches(joined(wanted), parts);
    });
  }

  void add(const toml::source_region& source, const std::string& path, std::string what, std::string remedy) {
    if (faults_.size() == kMostFaults) return;
    const auto line = static_cast<std::uint32_t>(source.begin.line);
    if (!path.empty()) {
      config_.refused_.insert(path);
      what = fmt::format("{}: {}", path, what);
    }
    faults_.push_back(
        {line, {ErrorCode::input, std::move(what), fmt::format("{}:{}", name_, line), std::move(remedy)}});
  }

  std::vector<Error> errors_by_line() {
    std::stable_sort(faults_.begin(), faults_.end(), [](const Fault& a, const Fault& b) { return a.line < b.line; });
    std::vector<Error> errors;
    errors.reserve(faults_.size());
    for (Fault& fault : faults_) errors.push_back(std::move(fault.error));
    return errors;
  }

  void add_unknown(const toml::source_region& source, const Parts& parts) {
    // The declared names that could stand here.
    std::set<std::string> names;
    for (const ConfigKey& key : config_.keys_) {
      Parts wanted = split(key.path, '.');
      if (wanted.size() < parts.size()) continue;
      const std::string name(wanted[parts.size() - 1]);
      wanted.resize(parts.size() - 1);
      if (matches(joined(wanted), Parts(parts.begin(), parts.end() - 1)) || parts.size() == 1) names.insert(name);
    }
    const std::string near = nearest_name(parts.back(), {names.begin(), names.end()});
    std::string remedy =
        near.empty() ? fmt::format("known here: {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", near);
    if (names.empty()) remedy = "it belongs to no section";
    add(source, joined(parts).substr(0, 120), "there is no such key", std::move(remedy));
  }

  void set(const ConfigKey& key, const std::string& path, const toml::node& node) {
    switch (key.type) {
      case ConfigType::flag:
        if (const auto value = node.value_exact<bool>())
          return keep(key, path, node, *value, *value ? "true" : "false");
        break;
      case ConfigType::text:
        if (const auto value = node.value_exact<std::string>()) return set_text(key, path, node, *value);
        break;
      case ConfigType::texts:
        if (node.is_array()) return set_texts(key, path, node);
        break;
      default:
        if (node.is_number() || node.is_string()) return set_number(key, path, node);
    }
    const TypeName type = type_name(key.type);
    add(node.source(), path, fmt::format("is not {}", type.name), fmt::format("write {}", type.example));
  }

  void set_text(const ConfigKey& key, const std::string& path, const toml::node& node, const std::string& value) {
    if (!is_printable_ascii(value)) return add(node.source(), path, "holds more than printable ASCII", {});
    keep(key, path, node, value, quoted(value));
  }

  void set_texts(const ConfigKey& key, const std::string& path, const toml::node& node) {
    constexpr std::size_t kMostElements = 4096;
    std::vector<std::string> values;
    std::string shown;
    for (const toml::node& element : *node.as_array()) {
      const auto value = element.value_exact<std::string>();
      if (!value || !is_printable_ascii(*value) || values.size() == kMostElements) {
        return add(element.source(), path, "is not a list of strings of printable ASCII, 4096 at most",
                   fmt::format("write {}", type_name(ConfigType::texts).example));
      }
      shown += (values.empty() ? "" : ", ") + quoted(*value);
      values.push_back(*value);
    }
    keep(key, path, node, std::move(values), "[" + shown + "]");
  }

  void set_number(const ConfigKey& key, const std::string& path, const toml::node& node) {
    const TypeName type = type_name(key.type);
    double value = 0;
    if (const auto text = node.value_exact<std::string>()) {
      if (key.type == ConfigType::number || key.type == ConfigType::whole) {
        return add(node.source(), path, "is a string", fmt::format("write {} without quotes", type.name));
      }
      const auto parsed = number_of(*text, key.type);
      if (!parsed) return add(node.source(), path, parsed.error().what, parsed.error().remedy);
      value = *parsed;
    } else {
      value = node.value<double>().value_or(std::nan(""));
      if (has_unit(key.type)) return add_without_unit(key, path, node, value);
      if (key.type == ConfigType::whole && !node.is_integer()) {
        return add(node.source(), path, fmt::format("{} is not a whole number", value), {});
      }
    }
    if (!(value >= key.low && value <= key.high)) {
      return add(node.source(), path,
                 fmt::format("{} is outside {} to {}", shown_number(value, key.type), shown_number(key.low, key.type),
                             shown_number(key.high, key.type)),
                 {});
    }
    keep(key, path, node, value, shown_number(value, key.type));
  }

  /// "400000 has no unit": a value that fits only as milliwatts was meant as such.
  void add_without_unit(const ConfigKey& key, const std::string& path, const toml::node& node, double value) {
    const auto fits = [&](double v) { return v > 0 && v >= key.low && v <= key.high; };
    std::string form(type_name(key.type).example);
    if (fits(value)) {
      form = shown_number(value, key.type);
    } else if (fits(value / 1000)) {
      form = shown_number(value / 1000, key.type);
    }
    add(node.source(), path, fmt::format("{} has no unit", value), "write " + form);
  }

  void keep(const ConfigKey& key, const std::string& path, const toml::node& node, Config::Value value,
            std::string shown) {
    const std::string where = fmt::format("{}:{}", name_, static_cast<std::uint32_t>(node.source().begin.line));
    config_.values_[path] = {std::move(value), std::move(shown), where, &key};
  }

  Config config_;
  std::string name_;
  std::vector<Fault> faults_;
};

namespace {

/// A mistake of the program, not of the file.
[[noreturn]] void stop(std::string_view path, const char* why) {
  std::fprintf(stderr, "flyball: configuration key '%.*s' %s\n", static_cast<int>(path.size()), path.data(), why);
  std::abort();
}

/// A default as the line of a file.
std::string fallback_line(const ConfigKey& key, std::string_view name) {
  std::string value(key.fallback);
  if (has_unit(key.type) || key.type == ConfigType::text) value = quoted(value);
  if (key.type == ConfigType::texts) {
    value = "[";
    for (const std::string_view element : split(key.fallback, ',')) {
      value += (value == "[" ? "" : ", ") + quoted(trim(element));
    }
    value += ']';
  }
  return fmt::format("{} = {}", name, value);
}

std::string section_of(std::string_view path) { return std::string(path.substr(0, path.rfind('.'))); }
std::string_view name_of(std::string_view path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

tl::expected<Config, std::vector<Error>> Config::parse(std::string_view text, const std::string& name,
                                                       std::span<const ConfigKey> keys) {
  Partial made = parse_partly(text, name, keys);
  if (!made.faults.empty()) return tl::unexpected(std::move(made.faults));
  return std::move(made.config);
}

Config::Partial Config::parse_partly(std::string_view text, const std::string& name, std::span<const ConfigKey> keys) {
  Partial read = ConfigReader(keys, name).read(text);
  Config made = defaults(keys);
  for (auto& [path, set] : read.config.values_) made.values_[path] = std::move(set);
  made.refused_ = std::move(read.config.refused_);
  return {std::move(made), std::move(read.faults), read.readable};
}

Config Config::defaults(std::span<const ConfigKey> keys) {
  std::string text;
  for (const ConfigKey& key : keys) {
    if (!key.fallback.empty()) text += fallback_line(key, key.path) + '\n';
  }
  Partial made = ConfigReader(keys, "default").read(text);
  if (!made.faults.empty()) stop(made.faults.front().what, "has a default that is not allowed");
  for (auto& [path, set] : made.config.values_) set.where = "default";
  return std::move(made.config);
}

const Config::Set* Config::find(std::string_view path, ConfigType type) const {
  const auto found = values_.find(path);
  const Parts parts = split(path, '.');
  for (const ConfigKey& key : keys_) {
    if (!matches(key.path, parts)) continue;
    if (key.type != type) stop(path, "is declared with another type");
    return found == values_.end() ? nullptr : &found->second;
  }
  stop(path, "is not declared");
}

std::optional<double> Config::as_number(std::string_view path, ConfigType type) const {
  const Set* set = find(path, type);
  return set == nullptr ? std::nullopt : std::optional(std::get<double>(set->value));
}

std::optional<Watts> Config::power(std::string_view path) const {
  const auto value = as_number(path, ConfigType::power);
  return value ? std::optional(Watts(*value)) : std::nullopt;
}
std::optional<Seconds> Config::duration(std::string_view path) const {
  const auto value = as_number(path, ConfigType::duration);
  return value ? std::optional(Seconds(*value)) : std::nullopt;
}
std::optional<Hertz> Config::frequency(std::string_view path) const {
  const auto value = as_number(path, ConfigType::frequency);
  return value ? std::optional(Hertz(*value)) : std::nullopt;
}
std::optional<double> Config::fraction(std::string_view path) const { return as_number(path, ConfigType::fraction); }
std::optional<double> Config::number(std::string_view path) const { return as_number(path, ConfigType::number); }
std::optional<std::int64_t> Config::whole(std::string_view path) const {
  const auto value = as_number(path, ConfigType::whole);
  return value ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
}
std::optional<bool> Config::flag(std::string_view path) const {
  const Set* set = find(path, ConfigType::flag);
  return set == nullptr ? std::nullopt : std::optional(std::get<bool>(set->value));
}
std::optional<std::string> Config::text(std::string_view path) const {
  const Set* set = find(path, ConfigType::text);
  return set == nullptr ? std::nullopt : std::optional(std::get<std::string>(set->value));
}
std::vector<std::string> Config::texts(std::string_view path) const {
  const Set* set = find(path, ConfigType::texts);
  return set == nullptr ? std::vector<std::string>() : std::get<std::vector<std::string>>(set->value);
}

std::vector<std::string> Config::names(std::string_view prefix) const {
  std::vector<std::string> names;
  for (const auto& [path, set] : values_) {
    if (!path.starts_with(std::string(prefix) + '.')) continue;
    const std::string_view rest = std::string_view(path).substr(prefix.size() + 1);
    const std::string name(rest.substr(0, rest.find('.')));
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

std::string Config::where(std::string_view path) const {
  const auto found = values_.find(path);
  return found == values_.end() ? "default" : found->second.where;
}

std::vector<Config::Entry> Config::entries() const {
  std::vector<Entry> all;
  for (const ConfigKey& key : keys_) {
    bool any = false;
    for (const auto& [path, set] : values_) {
      if (set.key != &key) continue;
      all.push_back({path, set.shown, set.where, &key});
      any = true;
    }
    const bool is_pattern = key.path.find('*') != std::string_view::npos;
    if (!any && !is_pattern) all.push_back({std::string(key.path), {}, "default", &key});
  }
  return all;
}

std::string config_template(std::span<const ConfigKey> keys) {
  std::string text;
  std::string section;
  for (const ConfigKey& key : keys) {
    if (const std::string of_key = section_of(key.path); of_key != section) {
      section = of_key;
      const auto star = section.find('*');
      const std::string head = star == std::string::npos ? section : section.substr(0, star) + "\"NAME\"";
      text += fmt::format("{}{}[{}]\n", text.empty() ? "" : "\n", star == std::string::npos ? "" : "# ", head);
    }
    text += fmt::format("# {}\n", key.help);
    if (!key.source.empty()) text += fmt::format("# Default: {}\n", key.source);
    const TypeName type = type_name(key.type);
    text += key.fallback.empty() ? fmt::format("# {} = {}\n", name_of(key.path), type.example)
                                 : fmt::format("# {}\n", fallback_line(key, name_of(key.path)));
  }
  return text;
}

}  // namespace flyball
