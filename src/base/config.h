#pragma once
// Configuration files: TOML whose every key is declared with its type, range, default and meaning. A file with a key
// that is not declared, a value without unit, of the wrong type or outside its range is refused, with all faults named
// at once, each with its line and the accepted form.
//
// Of TOML this takes tables, dotted keys, strings on one line, numbers, booleans and lists of strings. Before the
// parser of TOML sees a file, it is refused if it is larger than 1 MiB, has lines beyond 4 KiB, anything but printable
// ASCII, text over several lines, more than 8 levels or more than 8 parts in a key: none of these is needed, and some
// of them crash the parser.

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace flyball {

enum class ConfigType {
  power,      ///< a string with unit, "400W"
  duration,   ///< "10s"
  frequency,  ///< "1410MHz"
  fraction,   ///< 0.012 or "1.2%"
  number,     ///< a bare number; the key says the unit
  whole,      ///< a whole number
  flag,       ///< true or false
  text,       ///< a string
  texts,      ///< a list of strings
};

/// The declaration of a key.
struct ConfigKey {
  /// "run.interval". A part "*" stands for any name: "site.gpu.*.maximum".
  std::string_view path;
  ConfigType type;
  /// As it would be written in a file (a list: its elements separated by commas); empty = none.
  std::string_view fallback;
  double low = 0;  ///< of the value in its base unit (W, s, Hz, 1), both inclusive; ignored for flags and texts
  double high = 0;
  std::string_view help;
  std::string_view source;  ///< where the default comes from; empty if there is none
};

/// A file that was accepted, and the defaults of what it does not say.
class Config {
 public:
  /// All faults of the file, at most 50. `name` is for messages. `keys` must outlive the result.
  static tl::expected<Config, std::vector<Error>> parse(std::string_view text, const std::string& name,
                                                        std::span<const ConfigKey> keys);
  struct Partial;
  /// What of the file can be used, beside its faults: for those who check more and tell all at once.
  static Partial parse_partly(std::string_view text, const std::string& name, std::span<const ConfigKey> keys);
  /// The defaults alone.
  static Config defaults(std::span<const ConfigKey> keys);

  // Asking for a path that is not declared, or as another type than it is declared with, ends the program. Empty: not
  // in the file, and no default.
  std::optional<Watts> power(std::string_view path) const;
  std::optional<Seconds> duration(std::string_view path) const;
  std::optional<Hertz> frequency(std::string_view path) const;
  std::optional<double> fraction(std::string_view path) const;
  std::optional<double> number(std::string_view path) const;
  std::optional<std::int64_t> whole(std::string_view path) const;
  std::optional<bool> flag(std::string_view path) const;
  std::optional<std::string> text(std::string_view path) const;
  std::vector<std::string> texts(std::string_view path) const;

  /// The names that stand for "*" behind `prefix`: "site.gpu" → the GPUs that the file names.
  std::vector<std::string> names(std::string_view prefix) const;
  /// "file:12" of the line that set the path, or "default".
  std::string where(std::string_view path) const;
  /// The file sets the path to something that is among the faults of Partial.
  bool refused(std::string_view path) const { return refused_.contains(path); }

  /// What holds, key by key in the order of declaration.
  struct Entry {
    std::string path;
    std::string value;  ///< as TOML; empty if there is none
    std::string where;
    const ConfigKey* key;
  };
  std::vector<Entry> entries() const;

 private:
  friend class ConfigReader;
  using Value = std::variant<double, bool, std::string, std::vector<std::string>>;
  struct Set {
    Value value;
    std::string shown;
    std::string where;
    const ConfigKey* key;
  };
  const Set* find(std::string_view path, ConfigType type) const;
  std::optional<double> as_number(std::string_view path, ConfigType type) const;

  std::span<const ConfigKey> keys_;
  std::map<std::string, Set, std::less<>> values_;
  std::set<std::string, std::less<>> refused_;
};

struct Config::Partial {
  Config config;
  std::vector<Error> faults;  ///< by line, at most 50
  bool readable = false;      ///< else nothing of the file is in `config`
};

/// A file of comments and defaults, one section a table: what `config check` users start from.
std::string config_template(std::span<const ConfigKey> keys);

}  // namespace flyball
