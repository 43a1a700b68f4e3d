#include "sources/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/sha256.h"

namespace lmemo {
namespace {

constexpr size_t kFileBufferBytes = size_t{256} << 10;

// The file as it lies on the disk.
class RawFile {
 public:
  static Result<std::unique_ptr<RawFile>> open(const Path& path, bool hashes) {
    int number;
    // O_NONBLOCK: a pipe that nobody writes to must not hang us.
    do number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (number < 0 && errno == EINTR);
    if (number < 0) return errno_error(errno, "read", path);
    std::unique_ptr<RawFile> file(new RawFile(path, number, hashes));
    struct stat status;
    if (::fstat(number, &status) != 0) return errno_error(errno, "read", path);
    if (S_ISDIR(status.st_mode))
      return Error{ErrorCode::invalid_argument,
                   "cannot read " + path.string() + ": it is a directory, expected a file"};
    // Files are looked at more than once: to tell whether they changed, and to read them.
    if (!S_ISREG(status.st_mode))
      return Error{ErrorCode::invalid_argument,
                   "cannot read " + path.string() + ": it is a pipe or a device, expected a regular file"};
    ::posix_fadvise(number, 0, 0, POSIX_FADV_SEQUENTIAL);
    return file;
  }
  ~RawFile() { ::close(number_); }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  Result<size_t> read(std::span<char> buffer) {
    size_t count = 0;
    // What peek() saw comes first.
    if (!peeked_.empty()) {
      count = std::min(peeked_.size(), buffer.size());
      std::copy_n(peeked_.data(), count, buffer.data());
      peeked_.erase(0, count);
    } else {
      LMEMO_ASSIGN(count, read_some(buffer));
    }
    bytes_read_ += count;
    return count;
  }

  Result<std::string_view> peek(size_t byte_count) {
    std::string front(byte_count, '\0');
    size_t have = 0;
    while (have < byte_count) {
      LMEMO_ASSIGN(const size_t count, read_some(std::span(front).subspan(have)));
      if (count == 0) break;
      have += count;
    }
    front.resize(have);
    peeked_ = std::move(front);
    return std::string_view(peeked_);
  }

  Status seek(uint64_t offset) {
    assert(!hashes_ && offset >= bytes_read_);
    const uint64_t peeked_end = bytes_read_ + peeked_.size();
    if (offset < peeked_end) {
      peeked_.erase(0, offset - bytes_read_);
    } else {
      peeked_.clear();
      if (::lseek(number_, static_cast<off_t>(offset), SEEK_SET) < 0)
        return errno_error(errno, "read", path_);
    }
    bytes_read_ = offset;
    return {};
  }

  const Path& path() const { return path_; }
  uint64_t bytes_read() const { return bytes_read_; }
  Digest digest() {
    assert(hashes_);
    return sha256_.finish();
  }

 private:
  RawFile(const Path& path, int number, bool hashes) : path_(path), number_(number), hashes_(hashes) {}

  Result<size_t> read_some(std::span<char> buffer) {
    ssize_t count;
    do count = ::read(number_, buffer.data(), buffer.size());
    while (count < 0 && errno == EINTR);
    if (count < 0) return errno_error(errno, "read", path_);
    if (hashes_) sha256_.update(std::as_bytes(buffer.first(static_cast<size_t>(count))));
    return static_cast<size_t>(count);
  }

  const Path path_;
  const int number_;
  const bool hashes_;
  Sha256 sha256_;
  std::string peeked_;
  uint64_t bytes_read_ = 0;
};

class Stream : public ByteStream {
 public:
  explicit Stream(std::unique_ptr<RawFile> file) : file_(std::move(file)) {}
  uint64_t file_bytes_read() const override { return file_->bytes_read(); }
  Digest file_digest() override { return file_->digest(); }

 protected:
  const std::unique_ptr<RawFile> file_;
};

class PlainStream : public Stream {
 public:
  using Stream::Stream;
  FileEncoding encoding() const override { return FileEncoding::plain; }
  Status seek(uint64_t offset) override { return file_->seek(offset); }
  Result<size_t> read(std::span<char> buffer) override {
    size_t have = 0;
    while (have < buffer.size()) {
      LMEMO_ASSIGN(const size_t count, file_->read(buffer.subspan(have)));
      if (count == 0) break;
      have += count;
    }
    return have;
  }
};

// What gzip and zstd have in common: a buffer of compressed bytes, and reading in order to skip.
class CompressedStream : public Stream {
 public:
  using Stream::Stream;

  Result<size_t> read(std::span<char> buffer) override {
    size_t have = 0;
    while (have < buffer.size()) {
      if (next_ == end_ && !at_file_end_) {
        LMEMO_ASSIGN(const size_t count, file_->read(compressed_));
        next_ = compressed_.data();
        end_ = next_ + count;
        at_file_end_ = count == 0;
      }
      // A decoder may still hold output when its input is used up.
      const char* const before = next_;
      LMEMO_ASSIGN(const size_t count, decompress(buffer.subspan(have)));
      have += count;
      if (at_file_end_ && next_ == end_ && count == 0) {
        if (!is_between_frames())
          return damaged("it ends in the middle of a " + std::string(word()) + " frame");
        break;
      }
      assert(count > 0 || next_ > before || next_ == end_);
      static_cast<void>(before);
    }
    offset_ += have;
    return have;
  }

  Status seek(uint64_t offset) override {
    assert(offset >= offset_);
    std::vector<char> skipped(kFileBufferBytes);
    while (offset_ < offset) {
      const size_t wanted = static_cast<size_t>(std::min<uint64_t>(skipped.size(), offset - offset_));
      LMEMO_ASSIGN(const size_t count, read(std::span(skipped).first(wanted)));
      if (count < wanted) break;
    }
    return {};
  }

 protected:
  // Takes from next_ up to end_; returns how much it wrote.
  virtual Result<size_t> decompress(std::span<char> out) = 0;
  virtual bool is_between_frames() const = 0;
  virtual std::string_view word() const = 0;

  Error damaged(const std::string& what) const {
    return {ErrorCode::corruption, "cannot decompress " + file_->path().string() + ": " + what +
                                       ", near byte " + std::to_string(file_->bytes_read()) +
                                       " of the file; fetch or write it again"};
  }

  const char* next_ = nullptr;
  const char* end_ = nullptr;

 private:
  std::vector<char> compressed_ = std::vector<char>(kFileBufferBytes);
  bool at_file_end_ = false;
  uint64_t offset_ = 0;  // In the uncompressed stream.
};

class GzipStream : public CompressedStream {
 public:
  explicit GzipStream(std::unique_ptr<RawFile> file) : CompressedStream(std::move(file)) {
    is_ready_ = inflateInit2(&state_, 15 + 16) == Z_OK;
  }
  ~GzipStream() override {
    if (is_ready_) inflateEnd(&state_);
  }
  FileEncoding encoding() const override { return FileEncoding::gzip; }

 protected:
  std::string_view word() const override { return "gzip"; }
  bool is_between_frames() const override { return is_between_; }
  Result<size_t> decompress(std::span<char> out) override {
    if (!is_ready_) return Error{ErrorCode::no_space, "out of memory for decompressing"};
    if (is_between_) {
      // As gzip does: zeros that pad the end, of a tape for example, are no member.
      while (next_ < end_ && *next_ == 0 && had_member_) ++next_;
      if (next_ == end_) return size_t{0};
      inflateReset(&state_);  // Several members in a row are one stream.
      is_between_ = false;
    }
    state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next_));
    state_.avail_in = static_cast<uInt>(end_ - next_);
    state_.next_out = reinterpret_cast<Bytef*>(out.data());
    const size_t room = std::min<size_t>(out.size(), size_t{1} << 30);
    state_.avail_out = static_cast<uInt>(room);
    const int code = inflate(&state_, Z_NO_FLUSH);
    next_ = end_ - state_.avail_in;
    if (code == Z_STREAM_END) {
      is_between_ = true;
      had_member_ = true;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return damaged(std::string("gzip says: ") + (state_.msg ? state_.msg : "damaged"));
    }
    return room - state_.avail_out;
  }

 private:
  z_stream state_{};
  bool is_ready_ = false;
  bool is_between_ = true;
  bool had_member_ = false;
};

class ZstdStream : public CompressedStream {
 public:
  explicit ZstdStream(std::unique_ptr<RawFile> file)
      : CompressedStream(std::move(file)), state_(ZSTD_createDStream()) {}
  ~ZstdStream() override { ZSTD_freeDStream(state_); }
  FileEncoding encoding() const override { return FileEncoding::zstd; }

 protected:
  std::string_view word() const override { return "zstd"; }
  bool is_between_frames() const override { return is_between_; }
  Result<size_t> decompress(std::span<char> out) override {
    if (state_ == nullptr) return Error{ErrorCode::no_space, "out of memory for decompressing"};
    ZSTD_inBuffer in{next_, static_cast<size_t>(end_ - next_), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    if (in.size == 0 && is_between_) return size_t{0};
    const size_t code = ZSTD_decompressStream(state_, &to, &in);
    next_ += in.pos;
    if (ZSTD_isError(code)) return damaged(std::string("zstd says: ") + ZSTD_getErrorName(code));
    is_between_ = code == 0;
    return to.pos;
  }

 private:
  ZSTD_DStream* const state_;
  bool is_between_ = true;
};

bool is_zstd(std::string_view front) {
  if (front.size() < 4) return false;
  if (front == "\x28\xb5\x2f\xfd") return true;
  // A skippable frame, as parallel compressors put in front.
  return (front[0] & '\xf0') == '\x50' && front.substr(1) == "\x2a\x4d\x18";
}

}  // namespace

Result<std::unique_ptr<ByteStream>> ByteStream::open(const std::filesystem::path& path,
                                                     const Options& options) {
  LMEMO_ASSIGN(auto file, RawFile::open(path, options.hashes_file));
  if (options.is_raw) return {std::make_unique<PlainStream>(std::move(file))};
  LMEMO_ASSIGN(const std::string_view front, file->peek(4));
  if (front.substr(0, 2) == "\x1f\x8b") return {std::make_unique<GzipStream>(std::move(file))};
  if (is_zstd(front)) return {std::make_unique<ZstdStream>(std::move(file))};
  return {std::make_unique<PlainStream>(std::move(file))};
}

}  // namespace lmemo
