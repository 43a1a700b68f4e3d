// Any bytes as a file of saved pieces, with the digest put right: refused, or a table that gives what it took.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/sha256.h"
#include "tokenizer/fast/saved_pieces.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lmemo;
  using namespace lmemo::tokenizer;
  const Digest tokenizer{};
  std::string file = "lmemoPT2" + std::string(32, '\0');
  file.append(reinterpret_cast<const char*>(data), size);
  const Digest digest = sha256(bytes_of(file));
  file.append(text_of(digest.bytes));

  PieceTable table(6);
  LongPieceTable long_table(6);
  const auto count = load_saved_pieces(bytes_of(file), tokenizer, table, long_table);
  size_t known = 0;
  table.for_each([&](const PieceTable::Key& key, std::span<const uint32_t> ids) {
    if (!key.is_sound() || ids.empty() || ids.size() > PieceTable::kMaxIds) std::abort();
    ++known;
  });
  long_table.for_each([&](std::string_view piece, std::span<const uint32_t> ids) {
    if (!LongPieceTable::takes(piece) || ids.size() > piece.size()) std::abort();
    ++known;
  });
  if (count.ok() ? known > *count : known != 0) std::abort();
  return 0;
}
