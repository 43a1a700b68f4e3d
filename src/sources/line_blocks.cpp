#include "sources/line_blocks.h"

#include <algorithm>
#include <cstring>

namespace lmemo {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

uint64_t count_newlines(std::string_view bytes) {
  return static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
}

}  // namespace

std::optional<Line> LineCursor::next() {
  if (block_.is_too_long) {
    if (at_ != 0) return std::nullopt;
    at_ = 1;
    return Line{{}, number_, block_.offset, block_.too_long_bytes, true};
  }
  const std::string_view bytes = block_.bytes();
  if (at_ == bytes.size()) return std::nullopt;
  const std::string_view rest = bytes.substr(at_);
  const void* const newline = std::memchr(rest.data(), '\n', rest.size());
  const size_t length =
      newline ? static_cast<size_t>(static_cast<const char*>(newline) - rest.data()) : rest.size();
  Line line{rest.substr(0, length), number_++, block_.offset + at_, length + (newline ? 1 : 0)};
  if (at_ == 0 && block_.has_mark) line.text.remove_prefix(kByteOrderMark.size());
  at_ += line.byte_count;
  // Whether a line is too long must not depend on where blocks were cut.
  if (length > block_.max_line_bytes) {
    line.text = {};
    line.is_too_long = true;
  }
  return line;
}

Result<std::unique_ptr<LineBlockReader>> LineBlockReader::open(const std::filesystem::path& path,
                                                               const Options& options) {
  if (options.hashes_file && options.begin != 0)
    return Error{ErrorCode::invalid_argument, "a part of a file has no digest of the whole: begin at byte 0"};
  LMEMO_ASSIGN(auto stream, ByteStream::open(path, {.hashes_file = options.hashes_file}));
  if (options.begin > 0) LMEMO_TRY(stream->seek(options.begin));
  return std::unique_ptr<LineBlockReader>(new LineBlockReader(std::move(stream), options));
}

LineBlockReader::LineBlockReader(std::unique_ptr<ByteStream> stream, const Options& options)
    : stream_(std::move(stream)),
      options_(options),
      offset_(options.begin),
      read_offset_(options.begin),
      line_(options.first_line) {}

Result<size_t> LineBlockReader::read_up_to_end(std::span<char> buffer) {
  const uint64_t left = options_.end > read_offset_ ? options_.end - read_offset_ : 0;
  const size_t wanted = static_cast<size_t>(std::min<uint64_t>(buffer.size(), left));
  if (wanted == 0) return size_t{0};
  LMEMO_ASSIGN(const size_t count, stream_->read(buffer.first(wanted)));
  read_offset_ += count;
  return count;
}

Result<std::optional<LineBlock>> LineBlockReader::next() {
  LineBlock block;
  block.max_line_bytes = options_.max_line_bytes;
  block.buffer = std::move(rest_);
  rest_.clear();
  size_t have = block.buffer.size();
  size_t searched = 0;
  size_t end_of_lines = 0;  // Behind the last \n.
  while (!at_end_) {
    const size_t step = std::max<size_t>(options_.block_bytes, 1);
    block.buffer.resize(have + step + kLinePadding);
    LMEMO_ASSIGN(const size_t count, read_up_to_end(std::span(block.buffer).subspan(have, step)));
    have += count;
    at_end_ = count < step;
    const std::string_view fresh(block.buffer.data() + searched, have - searched);
    if (const size_t newline = fresh.rfind('\n'); newline != std::string_view::npos) {
      end_of_lines = searched + newline + 1;
      break;
    }
    searched = have;
    if (have > options_.max_line_bytes && !at_end_) {
      block.buffer.resize(have);
      return pass_over_long_line(std::move(block.buffer));
    }
  }
  if (end_of_lines == 0) end_of_lines = have;  // The last line, without a \n.
  if (have == 0) return std::optional<LineBlock>();

  block.byte_count = at_end_ ? have : end_of_lines;
  rest_.assign(block.buffer.data() + block.byte_count, block.buffer.data() + have);
  block.buffer.resize(block.byte_count + kLinePadding);
  std::fill_n(block.buffer.data() + block.byte_count, kLinePadding, '\0');
  block.offset = offset_;
  block.first_line = line_;
  block.has_mark = block.offset == 0 && block.bytes().starts_with(kByteOrderMark);
  offset_ += block.byte_count;
  line_ += count_newlines(block.bytes());
  return std::optional(std::move(block));
}

// Requires: no \n in `start`.
Result<std::optional<LineBlock>> LineBlockReader::pass_over_long_line(std::vector<char> start) {
  LineBlock block;
  block.is_too_long = true;
  block.offset = offset_;
  block.first_line = line_;
  block.too_long_bytes = start.size();
  start.resize(std::max<size_t>(options_.block_bytes, 1));
  while (!at_end_) {
    LMEMO_ASSIGN(const size_t count, read_up_to_end(start));
    at_end_ = count < start.size();
    const std::string_view bytes(start.data(), count);
    const size_t newline = bytes.find('\n');
    if (newline == std::string_view::npos) {
      block.too_long_bytes += count;
      continue;
    }
    block.too_long_bytes += newline + 1;
    rest_.assign(start.data() + newline + 1, start.data() + count);
    break;
  }
  block.buffer.assign(kLinePadding, '\0');
  offset_ += block.too_long_bytes;
  line_ += 1;
  return std::optional(std::move(block));
}

}  // namespace lmemo
