#include "tokenizer/fast/saved_pieces.h"

#include <unistd.h>

#include <bit>
#include <cstring>
#include <vector>

#include "base/file_system.h"
#include "base/sha256.h"

namespace lmemo::tokenizer {
namespace {

static_assert(std::endian::native == std::endian::little, "saved pieces are little-endian");

constexpr std::string_view kMagic = "lmemoPT2";
constexpr size_t kDigestBytes = 32;
constexpr size_t kHeaderBytes = kMagic.size() + kDigestBytes + 2 * sizeof(uint64_t);

template <typename Number>
void append(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Reads numbers from the front; false if there are not enough bytes.
class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}

  template <typename Number>
  bool read(Number& number) {
    return read_bytes(&number, sizeof number);
  }
  bool read_bytes(void* to, size_t count) {
    if (bytes_.size() < count) return false;
    std::memcpy(to, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return true;
  }
  size_t left() const { return bytes_.size(); }

 private:
  Bytes bytes_;
};

struct Saved {
  PieceTable::Key key{};
  uint32_t count = 0;
  uint32_t ids[PieceTable::kMaxIds];
};

struct SavedLong {
  uint32_t byte_count = 0, count = 0;
  uint32_t ids[LongPieceTable::kMaxBytes];
  char bytes[LongPieceTable::kMaxBytes];

  std::string_view text() const { return {bytes, byte_count}; }
};

bool read_piece(Reader& reader, Saved& piece) {
  if (!reader.read(piece.key.low) || !reader.read(piece.key.high) || !reader.read(piece.count)) return false;
  return piece.key.is_sound() && piece.count >= 1 && piece.count <= PieceTable::kMaxIds &&
         reader.read_bytes(piece.ids, piece.count * sizeof(uint32_t));
}

bool read_piece(Reader& reader, SavedLong& piece) {
  if (!reader.read(piece.byte_count) || !reader.read(piece.count)) return false;
  return LongPieceTable::takes(piece.byte_count) && piece.count <= piece.byte_count &&
         reader.read_bytes(piece.ids, piece.count * sizeof(uint32_t)) &&
         reader.read_bytes(piece.bytes, piece.byte_count);
}

Error damaged(const std::string& what) { return {ErrorCode::corruption, "saved pieces: " + what}; }

}  // namespace

std::string saved_pieces(const PieceTable& table, const LongPieceTable& long_table, const Digest& tokenizer) {
  std::string file(kMagic);
  file.append(text_of(tokenizer.bytes));
  file.append(2 * sizeof(uint64_t), '\0');
  uint64_t counts[2] = {0, 0};
  const auto add_ids = [&](std::span<const uint32_t> ids) {
    file.append(reinterpret_cast<const char*>(ids.data()), ids.size_bytes());
  };
  table.for_each([&](const PieceTable::Key& key, std::span<const uint32_t> ids) {
    append(file, key.low);
    append(file, key.high);
    append(file, static_cast<uint32_t>(ids.size()));
    add_ids(ids);
    ++counts[0];
  });
  long_table.for_each([&](std::string_view piece, std::span<const uint32_t> ids) {
    append(file, static_cast<uint32_t>(piece.size()));
    append(file, static_cast<uint32_t>(ids.size()));
    add_ids(ids);
    file.append(piece);
    ++counts[1];
  });
  std::memcpy(file.data() + kHeaderBytes - sizeof counts, counts, sizeof counts);
  const Digest digest = sha256(bytes_of(file));
  file.append(text_of(digest.bytes));
  return file;
}

Result<size_t> load_saved_pieces(Bytes file, const Digest& tokenizer, PieceTable& table,
                                 LongPieceTable& long_table) {
  if (file.size() < kHeaderBytes + kDigestBytes)
    return damaged("too short, " + std::to_string(file.size()) + " bytes");
  const Bytes content = file.first(file.size() - kDigestBytes);
  if (text_of(content.first(kMagic.size())) != kMagic)
    return damaged("expected \"" + std::string(kMagic) + "\" at the start");
  Digest found;
  std::memcpy(found.bytes.data(), content.data() + kMagic.size(), kDigestBytes);
  if (found != tokenizer)
    return Error{ErrorCode::incompatible,
                 "saved pieces: of the tokenizer " + found.hex() + ", expected " + tokenizer.hex()};
  const Digest digest = sha256(content);
  if (std::memcmp(digest.bytes.data(), file.data() + content.size(), kDigestBytes) != 0)
    return damaged("the digest does not match");

  // First look, then put: a file that is not sound changes nothing.
  uint64_t counts[2];
  for (const bool puts : {false, true}) {
    Reader reader(content.subspan(kHeaderBytes - sizeof counts));
    reader.read(counts);
    Saved piece;
    for (uint64_t i = 0; i < counts[0]; ++i) {
      if (!read_piece(reader, piece)) return damaged("piece " + std::to_string(i) + " is not sound");
      if (puts) table.put(piece.key, piece.key.hash(), {piece.ids, piece.count});
    }
    SavedLong long_piece;
    for (uint64_t i = 0; i < counts[1]; ++i) {
      if (!read_piece(reader, long_piece))
        return damaged("long piece " + std::to_string(i) + " is not sound");
      if (puts) long_table.put(long_piece.text(), {long_piece.ids, long_piece.count});
    }
    if (reader.left() != 0) return damaged(std::to_string(reader.left()) + " bytes behind the last piece");
  }
  return static_cast<size_t>(counts[0] + counts[1]);
}

Status save_pieces_to(const std::filesystem::path& path, const PieceTable& table,
                      const LongPieceTable& long_table, const Digest& tokenizer) {
  const std::string file = saved_pieces(table, long_table, tokenizer);
  FileSystem& files = real_file_system();
  const std::filesystem::path part = path.string() + ".part-" + std::to_string(::getpid());
  LMEMO_TRY(files.remove(part));
  {
    LMEMO_ASSIGN(const auto out, files.create(part));
    const Bytes bytes = bytes_of(file);
    if (const Status written = out->append({&bytes, 1}); !written.ok()) {
      (void)files.remove(part);
      return written;
    }
  }
  // Not synced: after a power cut it may be empty or torn, which the digest finds, and then pieces are learned again.
  return files.rename(part, path);
}

Result<size_t> load_pieces_from(const std::filesystem::path& path, const Digest& tokenizer, PieceTable& table,
                                LongPieceTable& long_table) {
  LMEMO_ASSIGN(const auto file, real_file_system().map(path));
  if (!file) return size_t{0};
  Result<size_t> count = load_saved_pieces(file->bytes(), tokenizer, table, long_table);
  if (!count.ok()) return Error{count.error().code, path.string() + ": " + count.error().message};
  return count;
}

}  // namespace lmemo::tokenizer
