#include "faces/chunks/range_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "sources/source_file.h"

namespace lmemo::chunks {

Result<FileStamp> stamp_of_file(const Path& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return errno_error(errno, "look at", path);
  if (!S_ISREG(status.st_mode)) return Error{ErrorCode::io_error, path.string() + " is no regular file"};
  return stamp_of(status);
}

Status RangeReader::read(const Path& path, uint64_t begin, uint64_t end, size_t padding, std::string& bytes) {
  if (!stream_ || path != path_ || begin < position_) {
    stream_.reset();
    LMEMO_ASSIGN(stream_, ByteStream::open(path));
    path_ = path;
    position_ = 0;
  }
  if (begin != position_) {
    if (Status status = stream_->seek(begin); !status.ok()) {
      stream_.reset();
      return status;
    }
  }
  // Memory as bytes come: a plan may ask for more than there is.
  constexpr uint64_t kStep = uint64_t{64} << 20;
  bytes.clear();
  while (bytes.size() < end - begin) {
    const size_t had = bytes.size();
    const uint64_t wanted = std::min(kStep, end - begin - had);
    bytes.resize(had + wanted + padding);
    auto count = stream_->read(std::span(bytes).subspan(had, wanted));
    if (!count.ok()) {
      stream_.reset();
      return count.error();
    }
    bytes.resize(had + *count);
    if (*count < wanted) {
      stream_.reset();  // After its end a stream is not asked again.
      break;
    }
  }
  position_ = begin + bytes.size();
  bytes.append(padding, '\0');
  return {};
}

}  // namespace lmemo::chunks
