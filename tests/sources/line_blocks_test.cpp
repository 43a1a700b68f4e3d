#include "sources/line_blocks.h"

#include <doctest/doctest.h>
#include <zlib.h>
#include <zstd.h>

#include <fstream>
#include <random>

#include "base/sha256.h"
#include "sources/text_file.h"
#include "support/temp_directory.h"
#include "support/test_scale.h"

using namespace lmemo;

namespace {

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string gzip(std::string_view bytes) {
  z_stream state{};
  REQUIRE(deflateInit2(&state, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&state, bytes.size()) + 64, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  state.avail_in = static_cast<uInt>(bytes.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&state, Z_FINISH) == Z_STREAM_END);
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

std::string zstd(std::string_view bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
  return out;
}

struct SeenLine {
  std::string text;
  uint64_t number, offset, byte_count;
  bool is_too_long;
  bool operator==(const SeenLine&) const = default;
};

Result<std::vector<SeenLine>> lines_of(const std::filesystem::path& path, LineBlockReader::Options options) {
  LMEMO_ASSIGN(auto reader, LineBlockReader::open(path, options));
  std::vector<SeenLine> lines;
  while (true) {
    LMEMO_ASSIGN(const std::optional<LineBlock> block, reader->next());
    if (!block) return lines;
    for (LineCursor cursor(*block); const std::optional<Line> line = cursor.next();)
      lines.push_back(
          {std::string(line->text), line->number, line->offset, line->byte_count, line->is_too_long});
  }
}

std::vector<SeenLine> plain_lines(std::string_view text, size_t max_line_bytes) {
  std::vector<SeenLine> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t newline = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, newline - at);
    const size_t length = std::min(newline + 1, text.size()) - at;
    const bool is_too_long = line.size() > max_line_bytes;
    lines.push_back({is_too_long ? "" : std::string(line), lines.size() + 1, at, length, is_too_long});
    at += length;
  }
  return lines;
}

}  // namespace

TEST_CASE("lines come whole, with number and place, whatever the blocks and the compression") {
  const test::TempDirectory directory;
  std::mt19937 random(7);
  for (int round = 0; round < test::scaled(60); ++round) {
    std::string text;
    const int count = static_cast<int>(random() % 40);
    for (int i = 0; i < count; ++i) {
      text.append(random() % 5 == 0 ? random() % 400 : random() % 12, static_cast<char>('a' + random() % 26));
      text += random() % 7 == 0 ? "\r\n" : "\n";
    }
    if (random() % 2 == 0) text += "last";
    LineBlockReader::Options options;
    options.block_bytes = 1 + random() % 100;
    options.max_line_bytes = random() % 3 == 0 ? 1 + random() % 100 : 1000;
    const std::vector<SeenLine> expected = plain_lines(text, options.max_line_bytes);

    const size_t half = text.empty() ? 0 : random() % text.size();
    write_file(directory / "plain", text);
    write_file(directory / "gz", gzip(text.substr(0, half)) + gzip(text.substr(half)));
    write_file(directory / "zst", zstd(text.substr(0, half)) + zstd(text.substr(half)));
    for (const char* name : {"plain", "gz", "zst"}) {
      INFO(name << " round " << round);
      const auto lines = lines_of(directory / name, options);
      REQUIRE(lines.ok());
      CHECK(*lines == expected);
      if (expected.size() < 3) continue;
      // A part, as a plan remembers it.
      const size_t first = random() % expected.size(), last = first + random() % (expected.size() - first);
      LineBlockReader::Options part = options;
      part.begin = expected[first].offset;
      part.end = expected[last].offset + expected[last].byte_count;
      part.first_line = expected[first].number;
      const auto part_lines = lines_of(directory / name, part);
      REQUIRE(part_lines.ok());
      CHECK(*part_lines == std::vector(expected.begin() + static_cast<ptrdiff_t>(first),
                                       expected.begin() + static_cast<ptrdiff_t>(last) + 1));
    }
  }
}

TEST_CASE("a byte-order mark belongs to no line") {
  const test::TempDirectory directory;
  write_file(directory / "file", "\xef\xbb\xbf{}\n\xef\xbb\xbf{}");
  const auto lines = *lines_of(directory / "file", {});
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].text == "{}");
  CHECK(lines[0].byte_count == 6);
  CHECK(lines[1].text == "\xef\xbb\xbf{}");
}

TEST_CASE("the digest is that of the file on the disk") {
  const test::TempDirectory directory;
  const std::string bytes = gzip("a\nb\n");
  write_file(directory / "file", bytes);
  LineBlockReader::Options options;
  options.hashes_file = true;
  auto reader = *LineBlockReader::open(directory / "file", options);
  while (true) {
    const auto block = reader->next();
    REQUIRE(block.ok());
    if (!*block) break;
  }
  CHECK(reader->file_digest() == sha256(bytes_of(bytes)));
  CHECK(reader->file_bytes_read() == bytes.size());
}

TEST_CASE("a compressed file cut anywhere or flipped anywhere is an error or the truth, never other lines") {
  const test::TempDirectory directory;
  std::string text;
  for (int i = 0; i < 30; ++i) text += "line " + std::to_string(i * i) + "\n";
  for (const std::string& bytes : {gzip(text), zstd(text)}) {
    for (size_t cut = 2; cut < bytes.size(); ++cut) {
      write_file(directory / "cut", bytes.substr(0, cut));
      const auto lines = lines_of(directory / "cut", {});
      // Cut within the first bytes it is not seen to be compressed at all.
      if (cut >= 4) CHECK_FALSE(lines.ok());
    }
    write_file(directory / "tail", bytes + "tail that is no frame");
    CHECK_FALSE(lines_of(directory / "tail", {}).ok());
  }
  const std::string bytes = gzip(text);  // Has a checksum; zstd has one only where it was asked for.
  for (size_t at = 10; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    write_file(directory / "flipped", flipped);
    const auto lines = lines_of(directory / "flipped", {});
    if (lines.ok()) CHECK(*lines == plain_lines(text, 1000));
  }
}

TEST_CASE("what cannot be read says why") {
  const test::TempDirectory directory;
  const auto missing = LineBlockReader::open(directory / "missing");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().message.find("missing") != std::string::npos);
  const auto folder = LineBlockReader::open(directory.path());
  REQUIRE_FALSE(folder.ok());
  CHECK(folder.error().message.find("directory") != std::string::npos);
}

TEST_CASE("a text file is one document") {
  const test::TempDirectory directory;
  write_file(directory / "plain",
             "\xef\xbb\xbf"
             "naïve\r\ntext");
  CHECK(*read_text_file(directory / "plain") == "naïve\r\ntext");
  const std::string large(3'000'000, 'x');
  write_file(directory / "zst", zstd(large));
  CHECK(*read_text_file(directory / "zst") == large);
  CHECK_FALSE(read_text_file(directory / "zst", 1000).ok());
  write_file(directory / "latin", "na\xefve");
  const auto latin = read_text_file(directory / "latin");
  REQUIRE_FALSE(latin.ok());
  CHECK(latin.error().message.find("byte 2") != std::string::npos);
  write_file(directory / "empty", "");
  CHECK(read_text_file(directory / "empty")->empty());
}
