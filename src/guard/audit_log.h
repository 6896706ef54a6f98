#pragma once
// The audit log on disk: one JSON line an event, each holding the SHA-256 of the line before it, so that an edited,
// removed or moved line breaks the chain. The head file beside it ("….head") holds count and hash of the newest sealed
// line, so that a cut end is found too; whoever can rewrite both files is only caught by a head kept elsewhere.
// Formats: doc/format-journal.md.

#include <memory>
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
  /// Syncs and rewrites the head file when lines were added since the last time.
  Result<> seal();
  const AuditHead& head() const { return head_; }

 private:
  AuditLog(Filesystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  Filesystem& files_;
  std::string path_;
  std::unique_ptr<AppendFile> file_;
  AuditHead head_;
  AuditHead sealed_;
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
  std::uint64_t lines = 0;          ///< that chain, from the first
  AuditHead head;                   ///< the last line, for keeping elsewhere
  std::vector<std::string> hashes;  ///< of the lines that chain
  std::uint64_t unsealed = 0;       ///< behind the head: written shortly before a crash, chained but not anchored
  std::vector<AuditProblem> problems;
  bool sound() const { return problems.empty(); }
};

/// Pure. `head` is the content of the head file, or empty when there is none (then a cut end cannot be seen, which is a
/// problem of its own unless the log is empty).
AuditVerdict verify_audit(std::string_view log, std::string_view head);
/// Adds a problem when the log does not hold the line that `head` ("NUMBER:HASH", kept elsewhere) names. Error `input`
/// when it names none.
Result<> compare_head(AuditVerdict& verdict, std::string_view head);
/// Reads both files. An error when the log cannot be read.
Result<AuditVerdict> verify_audit_files(Filesystem& files, const std::string& path);

}  // namespace flyball::guard
