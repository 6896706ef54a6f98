#pragma once
// The guard's memory across crashes: for each board that it has written to, the last Hold. Byte by byte in
// doc/format-journal.md. A torn end is expected and dropped; damage in the middle is found, named and survived.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/filesystem.h"
#include "base/result.h"
#include "guard/hold.h"

namespace flyball::guard {

/// What a journal file says. Pure: no file is touched.
struct JournalContent {
  std::map<DeviceId, Hold> holds;
  std::uint64_t generation = 0;     ///< starts of a guard so far
  std::uint64_t next_sequence = 1;  ///< of the next record
  std::size_t records = 0;          ///< good ones
  std::size_t good_bytes = 0;       ///< up to the end of the last good record
  bool torn_tail = false;           ///< the last write did not finish
  std::vector<std::string> damage;  ///< "bytes 120 to 180: checksum does not fit; 2 records lost"
};

/// Never fails: what can be read is read, the rest is in `damage`. An empty file is an empty journal.
JournalContent parse_journal(std::string_view bytes);

std::string encode_hold(const Hold& hold);
Result<Hold> decode_hold(std::string_view bytes);

enum class Durability { survives_crash, survives_power_cut };

class Journal {
 public:
  /// Reads the file, keeps a copy of a damaged one beside it ("….damaged"), rewrites it compacted and starts a new
  /// generation. With a disk that cannot be written the journal opens `broken`: what was read is there, nothing can be
  /// added. An error only when the file is there and cannot be read.
  static Result<std::unique_ptr<Journal>> open(Filesystem& files, std::string path);

  /// As read at `open`.
  const JournalContent& found() const { return found_; }
  std::uint64_t generation() const { return found_.generation; }

  /// Appends the board's present state. After an error the journal is `broken` until `mend` succeeds.
  Result<> save(const Hold& hold, Durability durability);
  /// The board is given back; nothing is owed any more.
  Result<> close(const DeviceId& device, Durability durability);

  /// The last append failed: a torn record may be at the end and nothing may be added behind it.
  bool broken() const { return broken_; }
  /// Rewrites the file from what is held now.
  Result<> mend();

 private:
  Journal(Filesystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  Result<> append(std::uint8_t type, std::string_view payload, Durability durability);
  std::string compacted();

  Filesystem& files_;
  std::string path_;
  JournalContent found_;
  std::map<DeviceId, std::string> live_;  ///< encoded holds, as the next compaction writes them
  std::unique_ptr<AppendFile> file_;
  std::uint64_t sequence_ = 1;
  std::size_t size_ = 0;
  bool broken_ = false;
};

}  // namespace flyball::guard
