// The bytes of a file from front to back, decompressed on the way: plain, gzip or zstd, told apart by their first
// bytes, not by their names. Memory stays bounded whatever the file holds.
//
//   LMEMO_ASSIGN(auto stream, ByteStream::open("corpus.jsonl.zst"));
//   while (true) {
//     LMEMO_ASSIGN(const size_t count, stream->read(buffer));  // 0: the end.
//     …
//   }
//   stream->file_digest();   // SHA-256 of the file as it lies on the disk, if it was asked for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "lmemo/bytes.h"
#include "lmemo/result.h"

namespace lmemo {

enum class FileEncoding { plain, gzip, zstd };

class ByteStream {
 public:
  struct Options {
    bool hashes_file = false;  // For file_digest(); needs the whole file, so it does not go with seek().
    bool is_raw = false;       // The bytes on the disk, whatever they are.
  };

  // corruption while reading: a compressed file that is cut off or damaged. What came before was right.
  static Result<std::unique_ptr<ByteStream>> open(const std::filesystem::path& path, const Options& options);
  static Result<std::unique_ptr<ByteStream>> open(const std::filesystem::path& path) {
    return open(path, {});
  }
  virtual ~ByteStream() = default;

  // Fills the buffer as far as there are bytes. Less than asked for: the end. After an error or the end, no more calls.
  virtual Result<size_t> read(std::span<char> buffer) = 0;
  // Goes on at this byte of the uncompressed stream: at once in a plain file, by reading up to it in a compressed one.
  // Requires: not before what was read, and not hashes_file. Beyond the end is the end.
  virtual Status seek(uint64_t offset) = 0;

  virtual FileEncoding encoding() const = 0;
  // How much of the file on the disk was read, for progress.
  virtual uint64_t file_bytes_read() const = 0;
  // Requires: hashes_file, and read() came to the end.
  virtual Digest file_digest() = 0;
};

}  // namespace lmemo
