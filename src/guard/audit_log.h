#pragma once
// The audit log on disk: one JSON line an event, each holding the SHA-256 of the line before it, so that an edited,
// removed or moved line breaks the chain. The head file beside it ("….head") holds count and hash of the newest sealed
// line, so that a cut end is found too; whoever can rewrite both files is only caught by a head kept elsewhere. A full
// file becomes a segment ("….000000000001", named after its first line) and the chain goes on. Formats:
// doc/format-journal.md.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/filesystem.h"
#include "guard/audit.h"

namespace flyball::guard {

struct AuditHead {
  std::uint64_t count = 0;  ///< lines
  std::string hash;         ///< of the last of them; of nothing when count is 0
  bool operator==(const AuditHead&) const = default;
};

class AuditLog final : public AuditSink {
 public:
  /// Goes on behind the last good line. A torn last line is moved out of the way into "….torn".
  static Result<std::unique_ptr<AuditLog>> open(Filesystem& files, std::string path);
  /// Appends; on disk only after `seal`.
  Result<> record(const AuditEvent& event) override;
  /// Syncs and rewrites the head file when lines were added since the last time; then, if the file is full, starts a
  /// new one. Of the segments the oldest are removed: the log stays below a gigabyte.
  Result<> seal();
  const AuditHead& head() const { return head_; }

 private:
  AuditLog(Filesystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  Result<> go_on(const std::string& content);
  Result<> turn_over();

  Filesystem& files_;
  std::string path_;
  std::unique_ptr<AppendFile> file_;
  AuditHead head_;
  AuditHead sealed_;
  std::uint64_t first_ = 1;  ///< number of the file's first line
  std::size_t size_ = 0;
  bool torn_ = false;  ///< the last append failed
};

enum class AuditFault { edited, missing_or_moved, cut, unreadable };
std::string_view to_string(AuditFault fault);

struct AuditProblem {
  AuditFault fault = AuditFault::edited;
  std::uint64_t line = 0;  ///< from 1
  std::string text;        ///< one sentence
};

struct AuditVerdict {
  std::uint64_t first = 0;     ///< number of the first line; above 1 when older segments are kept elsewhere, or removed
  std::uint64_t lines = 0;     ///< that chain
  AuditHead head;              ///< the last line, for keeping elsewhere
  std::uint64_t unsealed = 0;  ///< behind the head file: written shortly before a crash, chained but not anchored
  std::vector<AuditProblem> problems;  ///< the first hundred
  bool sound() const { return problems.empty(); }
};

/// Reads a log piece by piece. Pure.
class AuditVerifier {
 public:
  /// `first` is the number that the first line must have: 1, or that in the oldest segment's name.
  explicit AuditVerifier(std::uint64_t first = 1) : first_(first) {}
  /// A line that must be there, as kept elsewhere.
  void expect(AuditHead kept) { kept_ = std::move(kept); }
  /// One file, from its first line to its last.
  void feed(std::string_view file);
  /// `head` is the content of the head file; without one a cut end would not show, which is a problem of its own.
  AuditVerdict finish(std::string_view head);

 private:
  void problem(AuditFault fault, std::string text);
  void check(std::string_view line);
  void check_head(std::string_view head);

  std::uint64_t first_;
  std::optional<AuditHead> kept_;
  bool kept_seen_ = false;
  std::uint64_t number_ = 0;  ///< lines read
  AuditHead last_;
  std::map<std::uint64_t, std::string> recent_;  ///< hashes of the last lines, for the head file
  AuditVerdict verdict_;
};

/// "NUMBER:HASH", as `flyball audit verify` prints it.
Result<AuditHead> parse_audit_head(std::string_view text);
/// Reads the segments, the log and the head file. An error when the log cannot be read.
Result<AuditVerdict> verify_audit_files(Filesystem& files, const std::string& path,
                                        const std::optional<AuditHead>& kept = std::nullopt);

}  // namespace flyball::guard
