#include "faces/dataset/checked_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file_system.h"
#include "codec/checksum.h"

namespace lmemo::dataset {

Result<std::unique_ptr<CheckedFile>> CheckedFile::create(const std::filesystem::path& path) {
  const int number = open_descriptor(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (number < 0) return errno_error(errno, "create", path);
  std::unique_ptr<CheckedFile> file(new CheckedFile(path, number));
  file->block_.reserve(kCheckedBlockBytes);
  return file;
}

CheckedFile::~CheckedFile() { ::close(number_); }

Status CheckedFile::append(Bytes bytes) {
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kCheckedBlockBytes - block_.size());
    block_ += text_of(bytes.first(count));
    bytes = bytes.subspan(count);
    if (block_.size() == kCheckedBlockBytes) LMEMO_TRY(write_block());
  }
  return {};
}

Status CheckedFile::write_block() {
  checksum_ = lmemo::checksum(bytes_of(block_), checksum_);
  for (size_t done = 0; done < block_.size();) {
    const ssize_t count = ::write(number_, block_.data() + done, block_.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "write", path_);
    done += static_cast<size_t>(count);
  }
  // The disk works while we do, so that the sync at the end has less to wait for.
  ::sync_file_range(number_, static_cast<off_t>(byte_count_), static_cast<off_t>(block_.size()),
                    SYNC_FILE_RANGE_WRITE);
  byte_count_ += block_.size();
  block_.clear();
  return {};
}

Status CheckedFile::finish(bool durable) {
  if (!block_.empty()) LMEMO_TRY(write_block());
  block_ = {};
  if (durable && ::fdatasync(number_) != 0 && errno != EINVAL) return errno_error(errno, "sync", path_);
  return {};
}

}  // namespace lmemo::dataset
