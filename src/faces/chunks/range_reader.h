// The bytes of a part of a source, uncompressed. Keeps the last source open: parts that follow one another in a
// compressed file are read in one pass. For one thread.
#pragma once

#include <memory>
#include <string>

#include "faces/chunks/plan.h"
#include "sources/byte_stream.h"

namespace lmemo::chunks {

// What is there now; an error if it is gone or no regular file.
Result<FileStamp> stamp_of_file(const Path& path);

class RangeReader {
 public:
  // Fewer bytes than asked for if the stream ends before. `padding` zeros follow the bytes in memory.
  Status read(const Path& path, uint64_t begin, uint64_t end, size_t padding, std::string& bytes);

 private:
  Path path_;
  std::unique_ptr<ByteStream> stream_;
  uint64_t position_ = 0;
};

}  // namespace lmemo::chunks
