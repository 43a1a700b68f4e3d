#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "base/sha256.h"
#include "faces/chunks/chunk_writer.h"
#include "faces/chunks/token_ranks.h"
#include "support/temp_directory.h"
#include "support/test_scale.h"

using namespace lmemo;
using namespace lmemo::chunks;
using lmemo::test::TempDirectory;

namespace {

struct Documents {
  std::vector<uint32_t> tokens;
  std::vector<uint64_t> offsets = {0};
};

// Some words often, some phrases again and again, as in texts.
Documents documents(size_t count, uint32_t vocab_size, unsigned seed) {
  std::mt19937 random(seed);
  Documents made;
  for (size_t document = 0; document < count; ++document) {
    for (uint32_t length = random() % (random() % 300 + 1); length > 0; --length)
      made.tokens.push_back(random() % (random() % vocab_size + 1));
    made.offsets.push_back(made.tokens.size());
  }
  return made;
}

ChunkParameters parameters(uint32_t sequence_length, uint32_t vocab_size) {
  ChunkParameters made;
  made.sequence_length = sequence_length;
  made.vocab_size = vocab_size;
  made.tokenizer = sha256(bytes_of("a tokenizer"));
  return made;
}

ChunkContent content(const Documents& from) {
  ChunkContent made;
  made.number = 7;
  made.ranges = {{0, 1000, from.offsets.size() - 1, sha256(bytes_of("some lines"))}};
  made.left_out.broken = 2;
  made.tokens = from.tokens;
  made.offsets = from.offsets;
  return made;
}

std::string bytes_in(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const Path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// The documents as the file has them; fails the test if a token is missing or there twice.
Documents documents_in(const ChunkFile& file, size_t document_count) {
  std::vector<std::vector<uint32_t>> found(document_count);
  uint64_t rows = 0, tokens = 0;
  std::vector<ChunkPiece> pieces;
  std::vector<std::vector<uint32_t>> piece_tokens;
  ChunkRows block, small;
  small.wants_narrow = true;
  for (uint32_t number = 0; number < file.block_count(); ++number) {
    REQUIRE(file.read_block(number, block).ok());
    REQUIRE(file.read_block(number, small).ok());
    // The same tokens in two bytes, where they fit.
    const bool is_narrow = file.parameters().vocab_size <= 65536;
    REQUIRE((is_narrow ? std::vector<uint32_t>(small.narrow.begin(), small.narrow.end()) : small.tokens) ==
            block.tokens);
    REQUIRE((is_narrow ? small.tokens.empty() : small.narrow.empty()));
    REQUIRE((small.pieces == block.pieces && small.row_tokens == block.row_tokens));
    REQUIRE(block.first_row == rows);
    rows += block.row_count();
    for (size_t row = 0; row < block.row_count(); ++row) {
      size_t at = 0;
      REQUIRE(block.tokens_of(row).size() <= file.parameters().sequence_length);
      for (const ChunkPiece& piece : block.pieces_of(row)) {
        const auto here = block.tokens_of(row).subspan(at, piece.length);
        auto& whole = found.at(piece.document);
        if (whole.size() < piece.offset + piece.length) whole.resize(piece.offset + piece.length, ~0u);
        for (size_t index = 0; index < here.size(); ++index) {
          REQUIRE(whole[piece.offset + index] == ~0u);
          whole[piece.offset + index] = here[index];
        }
        at += piece.length;
        tokens += piece.length;
      }
      REQUIRE(at == block.tokens_of(row).size());
    }
  }
  CHECK(rows == file.counts().rows);
  CHECK(tokens == file.counts().tokens);
  Documents made;
  for (const auto& document : found) {
    made.tokens.insert(made.tokens.end(), document.begin(), document.end());
    made.offsets.push_back(made.tokens.size());
  }
  return made;
}

}  // namespace

TEST_CASE("every document comes back from a chunk file, whatever the coding") {
  const TempDirectory directory;
  int number = 0;
  for (const uint32_t vocab_size : {200u, 50257u, 151936u, 20000000u})
    for (const char* strategy : {"best_fit", "greedy", "concat"})
      for (const char* compression : {"none", "lz4", "zstd"})
        for (const char* level : {"fast", "default", "max"}) {
          if (vocab_size > 60000 && std::string_view(level) != "fast") continue;
          const Documents given = documents(120, vocab_size, 3);
          ChunkParameters how = parameters(64, vocab_size);
          how.strategy = strategy, how.compression = compression, how.level = level;
          how.eos = 5;
          const Path path = directory / std::to_string(number++);
          const auto written = write_chunk(real_file_system(), path, how, content(given));
          REQUIRE_MESSAGE(written.ok(), written.error().describe());
          const auto file = ChunkFile::open(path);
          REQUIRE_MESSAGE(file.ok(), file.error().describe());
          CHECK((*file)->parameters() == how);
          CHECK((*file)->counts() == written->counts);
          CHECK((*file)->counts().tokens == given.tokens.size());
          CHECK((*file)->counts().tokens_in == given.tokens.size());
          CHECK((*file)->counts().broken == 2);
          CHECK((*file)->number() == 7);
          const Documents back = documents_in(**file, 120);
          CHECK(back.tokens == given.tokens);
          CHECK(back.offsets == given.offsets);
          const auto whole = (*file)->verify();
          REQUIRE_MESSAGE(whole.ok(), whole.error().describe());
          CHECK(*whole == written->sha256);
          CHECK(*whole == sha256(bytes_of(bytes_in(path))));
        }
}

TEST_CASE("the same content gives the same bytes, other content or parameters others") {
  const TempDirectory directory;
  const Documents given = documents(300, 50257, 5);
  ChunkParameters how = parameters(128, 50257);
  REQUIRE(write_chunk(real_file_system(), directory / "a", how, content(given)).ok());
  REQUIRE(write_chunk(real_file_system(), directory / "b", how, content(given)).ok());
  how.min_tokens = 1;
  REQUIRE(write_chunk(real_file_system(), directory / "c", how, content(given)).ok());
  CHECK(bytes_in(directory / "a") == bytes_in(directory / "b"));
  CHECK(bytes_in(directory / "a") != bytes_in(directory / "c"));
}

TEST_CASE("a chunk of no documents is a chunk") {
  const TempDirectory directory;
  const auto written = write_chunk(real_file_system(), directory / "a", parameters(64, 1000), content({}));
  REQUIRE_MESSAGE(written.ok(), written.error().describe());
  const auto file = ChunkFile::open(directory / "a");
  REQUIRE(file.ok());
  CHECK((*file)->block_count() == 0);
  CHECK((*file)->verify().ok());
}

TEST_CASE("a token beyond the vocabulary is refused, and leaves no file") {
  const TempDirectory directory;
  const Documents given = {{1, 2, 3}, {0, 3}};
  CHECK(!write_chunk(real_file_system(), directory / "a", parameters(64, 3), content(given)).ok());
  CHECK(!std::filesystem::exists(directory / "a"));
}

TEST_CASE("a chunk with any byte flipped or cut anywhere never shows a wrong token, and verify says so") {
  const TempDirectory directory;
  for (const char* compression : {"none", "zstd"}) {
    const Documents given = documents(12, 300, 9);
    ChunkParameters how = parameters(256, 300);
    how.compression = compression;
    const Path path = directory / compression;
    REQUIRE(write_chunk(real_file_system(), path, how, content(given)).ok());
    const std::string whole = bytes_in(path);
    const auto check = [&](const std::string& bytes) {
      write_bytes(path, bytes);
      const auto file = ChunkFile::open(path);
      if (!file.ok()) return;
      CHECK(!(*file)->verify().ok());
      ChunkRows block;
      for (uint32_t number = 0; number < (*file)->block_count(); ++number)
        if ((*file)->read_block(number, block).ok()) CHECK(block.row_count() > 0);
    };
    for (size_t at = 0; at < whole.size(); at += 3) {
      std::string flipped = whole;
      flipped[at] ^= static_cast<char>(1 << (at % 8));
      check(flipped);
    }
    for (size_t cut = 0; cut < whole.size(); cut += 7) check(whole.substr(0, cut));
  }
}

TEST_CASE("ranks survive, and hostile tables do not") {
  const Documents given = documents(50, 70000, 2);
  const TokenRanks ranks = TokenRanks::of(given.tokens, 70000).value();
  const std::string bytes = ranks.encode();
  const auto back = TokenRanks::decode(bytes_of(bytes));
  REQUIRE(back.ok());
  CHECK(std::equal(back->ids().begin(), back->ids().end(), ranks.ids().begin(), ranks.ids().end()));
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) CHECK(ranks.ranks()[ranks.ids()[rank]] == rank);
  for (size_t cut = 0; cut < bytes.size(); ++cut)
    CHECK(!TokenRanks::decode(bytes_of(bytes.substr(0, cut))).ok());
  CHECK(bytes_for(1) == 1);
  CHECK(bytes_for(256) == 1);
  CHECK(bytes_for(257) == 2);
  CHECK(bytes_for(65536) == 2);
  CHECK(bytes_for(65537) == 3);
}
