// A file cut into blocks of whole lines, each block one buffer that any thread can work on by itself. This is the
// cheap half of reading JSON lines: nothing is parsed, only newlines are looked for.
//
//   LMEMO_ASSIGN(auto reader, LineBlockReader::open("corpus.jsonl"));
//   while (true) {
//     LMEMO_ASSIGN(std::optional<LineBlock> block, reader->next());
//     if (!block) break;
//     for (LineCursor lines(*block); std::optional<Line> line = lines.next();)
//       …line->text, line->number, line->offset…
//   }
//
// A line ends at \n alone; a \r before it belongs to the line (and is white space to JSON). The last line needs no \n.
// A byte-order mark at the start of the file is left out of the first line's text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lmemo/bytes.h"
#include "lmemo/result.h"
#include "sources/byte_stream.h"

namespace lmemo {

// simdjson reads this much past the end of what it parses; every block has it behind its last line.
inline constexpr size_t kLinePadding = 64;

struct LineBlock {
  std::vector<char> buffer;  // byte_count bytes and kLinePadding zeros.
  size_t byte_count = 0;
  uint64_t first_line = 1;  // The number of its first line.
  uint64_t offset = 0;      // Of its first byte in the uncompressed stream.
  bool has_mark = false;    // Starts with a byte-order mark.
  size_t max_line_bytes = 0;
  // One line much longer than the limit: its bytes were passed over. The block holds that line alone, none of its text.
  bool is_too_long = false;
  uint64_t too_long_bytes = 0;

  std::string_view bytes() const { return {buffer.data(), byte_count}; }
};

struct Line {
  std::string_view text;     // Without its \n.
  uint64_t number = 0;       // From 1.
  uint64_t offset = 0;       // Of its first byte in the uncompressed stream.
  uint64_t byte_count = 0;   // With its \n: the next line starts at offset + byte_count.
  bool is_too_long = false;  // Longer than the limit; text is empty.

  bool is_blank() const { return text.find_first_not_of(" \t\r") == std::string_view::npos && !is_too_long; }
};

class LineCursor {
 public:
  explicit LineCursor(const LineBlock& block) : block_(block), number_(block.first_line) {}
  std::optional<Line> next();

 private:
  const LineBlock& block_;
  size_t at_ = 0;
  uint64_t number_;
};

class LineBlockReader {
 public:
  struct Options {
    size_t block_bytes = size_t{1} << 20;  // About; a longer line makes a longer block.
    size_t max_line_bytes = size_t{64} << 20;
    bool hashes_file = false;  // See ByteStream.
    // A part of the uncompressed stream, which should start and end where lines do. Lines are counted from first_line.
    uint64_t begin = 0;
    uint64_t end = ~uint64_t{0};
    uint64_t first_line = 1;
  };

  static Result<std::unique_ptr<LineBlockReader>> open(const std::filesystem::path& path,
                                                       const Options& options);
  static Result<std::unique_ptr<LineBlockReader>> open(const std::filesystem::path& path) {
    return open(path, {});
  }

  // nullopt at the end. After an error, no more calls.
  Result<std::optional<LineBlock>> next();

  FileEncoding encoding() const { return stream_->encoding(); }
  uint64_t file_bytes_read() const { return stream_->file_bytes_read(); }
  Digest file_digest() { return stream_->file_digest(); }  // As ByteStream's.

 private:
  LineBlockReader(std::unique_ptr<ByteStream> stream, const Options& options);
  Result<size_t> read_up_to_end(std::span<char> buffer);
  Result<std::optional<LineBlock>> pass_over_long_line(std::vector<char> start);

  const std::unique_ptr<ByteStream> stream_;
  const Options options_;
  std::vector<char> rest_;  // The start of a line whose end was not yet read.
  uint64_t offset_;         // Of rest_.
  uint64_t read_offset_;    // Of what the stream gives next.
  uint64_t line_;
  bool at_end_ = false;
};

}  // namespace lmemo
