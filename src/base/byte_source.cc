#include "base/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace flyball {
namespace {

constexpr std::size_t kCompressedBlockBytes = 1 << 16;
// A window is memory; 2^25 admits all levels of zstd but --ultra 22 and --long.
constexpr int kLargestZstdWindowLog = 25;

class FileSource final : public ByteSource {
 public:
  FileSource(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override { ::close(fd_); }
  Result<std::size_t> read(char* to, std::size_t size) override {
    for (;;) {
      const ssize_t n = ::read(fd_, to, size);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) return fail(ErrorCode::failed, fmt::format("cannot read: {}", std::strerror(errno)), path_);
    }
  }

 private:
  std::string path_;
  int fd_;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : left_(bytes) {}
  Result<std::size_t> read(char* to, std::size_t size) override {
    const std::size_t n = std::min(size, left_.size());
    if (n > 0) std::memcpy(to, left_.data(), n);
    left_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view left_;
};

/// Reads on from the bytes that were looked at to find the format.
class SniffedSource final : public ByteSource {
 public:
  SniffedSource(std::string head, std::unique_ptr<ByteSource> rest) : head_(std::move(head)), rest_(std::move(rest)) {}
  Result<std::size_t> read(char* to, std::size_t size) override {
    const std::size_t n = std::min(size, head_.size() - used_);
    if (n == 0) return rest_->read(to, size);
    std::memcpy(to, head_.data() + used_, n);
    used_ += n;
    return n;
  }
  std::string damage() const override { return rest_->damage(); }

 private:
  std::string head_;
  std::size_t used_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<ByteSource> packed) : packed_(std::move(packed)), block_(kCompressedBlockBytes) {
    constexpr int kGzipOnly = 15 + 16;  // zlib: largest window, gzip header and trailer
    usable_ = ::inflateInit2(&stream_, kGzipOnly) == Z_OK;
    if (!usable_) finish("the decompressor could not start");
  }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;
  ~GzipSource() override {
    if (usable_) ::inflateEnd(&stream_);
  }
  std::string damage() const override { return damage_; }

  Result<std::size_t> read(char* to, std::size_t size) override {
    const auto wanted = static_cast<uInt>(std::min<std::size_t>(size, 1U << 30));
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = wanted;
    while (!done_ && stream_.avail_out == wanted) {
      if (stream_.avail_in == 0 && !pending_output_) {
        FLYBALL_ASSIGN(const std::size_t got, packed_->read(block_.data(), block_.size()));
        if (got == 0) {
          finish(in_member_ ? "the gzip stream is cut off" : "");
          break;
        }
        stream_.next_in = reinterpret_cast<Bytef*>(block_.data());
        stream_.avail_in = static_cast<uInt>(got);
      }
      if (stream_.avail_in > 0 || in_member_) step();
      pending_output_ = in_member_ && stream_.avail_out == 0;
    }
    return wanted - stream_.avail_out;
  }

 private:
  void step() {
    if (!in_member_ && *stream_.next_in != 0x1f) {
      finish("bytes that are not gzip follow the last member and were left out");
      return;
    }
    in_member_ = true;
    const int state = ::inflate(&stream_, Z_NO_FLUSH);
    if (state == Z_STREAM_END) {
      in_member_ = false;
      if (::inflateReset(&stream_) != Z_OK) finish("the decompressor could not go on");
    } else if (state != Z_OK && state != Z_BUF_ERROR) {
      finish(fmt::format("the gzip stream is damaged ({})", stream_.msg != nullptr ? stream_.msg : "no reason given"));
    }
  }
  void finish(std::string damage) {
    done_ = true;
    damage_ = std::move(damage);
  }

  std::unique_ptr<ByteSource> packed_;
  std::vector<char> block_;
  z_stream stream_{};
  bool usable_ = false;
  bool in_member_ = true;
  bool pending_output_ = false;  ///< the last call filled all it was given: there may be more without new input
  bool done_ = false;
  std::string damage_;
};

class ZstdSource final : public ByteSource {
 public:
  explicit ZstdSource(std::unique_ptr<ByteSource> packed)
      : packed_(std::move(packed)),
        block_(kCompressedBlockBytes),
        stream_(::ZSTD_createDStream(), &::ZSTD_freeDStream) {
    if (stream_ == nullptr ||
        ::ZSTD_isError(::ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kLargestZstdWindowLog)) != 0) {
      finish("the decompressor could not start");
    }
  }
  std::string damage() const override { return damage_; }

  Result<std::size_t> read(char* to, std::size_t size) override {
    ZSTD_outBuffer out{to, size, 0};
    while (!done_ && out.pos == 0) {
      if (in_.pos == in_.size && !pending_output_) {
        FLYBALL_ASSIGN(const std::size_t got, packed_->read(block_.data(), block_.size()));
        if (got == 0) {
          finish(in_frame_ ? "the zstd stream is cut off" : "");
          break;
        }
        in_ = ZSTD_inBuffer{block_.data(), got, 0};
      }
      const std::size_t state = ::ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (::ZSTD_isError(state) != 0) {
        finish(fmt::format("the zstd stream is damaged ({})", ::ZSTD_getErrorName(state)));
      }
      in_frame_ = state != 0;
      pending_output_ = in_frame_ && out.pos == out.size;
    }
    return out.pos;
  }

 private:
  void finish(std::string damage) {
    done_ = true;
    damage_ = std::move(damage);
  }

  std::unique_ptr<ByteSource> packed_;
  std::vector<char> block_;
  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool in_frame_ = true;
  bool pending_output_ = false;
  bool done_ = false;
  std::string damage_;
};

Result<std::unique_ptr<ByteSource>> decompressed(std::unique_ptr<ByteSource> raw) {
  std::array<char, 4> first{};
  std::size_t have = 0;
  while (have < first.size()) {
    FLYBALL_ASSIGN(const std::size_t got, raw->read(first.data() + have, first.size() - have));
    if (got == 0) break;
    have += got;
  }
  const std::string head(first.data(), have);
  auto whole = std::make_unique<SniffedSource>(head, std::move(raw));
  if (head.starts_with("\x1f\x8b")) return std::make_unique<GzipSource>(std::move(whole));
  if (head == "\x28\xb5\x2f\xfd") return std::make_unique<ZstdSource>(std::move(whole));
  return whole;
}

}  // namespace

Result<std::unique_ptr<ByteSource>> open_raw_bytes(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return fail(ErrorCode::input, fmt::format("cannot open: {}", std::strerror(errno)), path,
                errno == EACCES ? "check its owner and mode" : "");
  }
  auto file = std::make_unique<FileSource>(path, fd);
  struct stat about {};
  if (::fstat(fd, &about) == 0 && S_ISDIR(about.st_mode)) {
    return fail(ErrorCode::input, "is a folder", path, "name a file in it");
  }
  (void)::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  return file;
}

Result<std::unique_ptr<ByteSource>> open_bytes(const std::string& path) {
  FLYBALL_ASSIGN(auto raw, open_raw_bytes(path));
  return decompressed(std::move(raw));
}

std::unique_ptr<ByteSource> raw_bytes_in_memory(std::string_view bytes) {
  return std::make_unique<MemorySource>(bytes);
}

std::unique_ptr<ByteSource> bytes_with_head(std::string head, std::unique_ptr<ByteSource> rest) {
  return std::make_unique<SniffedSource>(std::move(head), std::move(rest));
}

std::unique_ptr<ByteSource> bytes_in_memory(std::string_view bytes) {
  // Memory cannot fail to be read.
  return *decompressed(std::make_unique<MemorySource>(bytes));
}

}  // namespace flyball
