#include "codec/half_planes.h"

#include <algorithm>
#include <vector>

#include "base/little_endian.h"
#include "codec/compression.h"
#include "codec/float_convert_dispatch.h"

namespace lmemo {
namespace {

// Both planes of a block stay in the second-level cache.
constexpr size_t kBlockNumbers = 1 << 17;
constexpr size_t kSampleBytes = 4096;

struct Planes {
  std::vector<uint8_t> front = std::vector<uint8_t>(kBlockNumbers);
  std::vector<uint8_t> back = std::vector<uint8_t>(kBlockNumbers);
  std::vector<std::byte> compressed =
      std::vector<std::byte>(max_compressed_bytes(Compression::zstd, kBlockNumbers));
};
Planes& planes_of_thread() {
  thread_local Planes planes;
  return planes;
}

bool is_worth_it(size_t compressed_bytes, size_t byte_count) {
  return compressed_bytes + byte_count / 32 < byte_count;
}

// Mantissas are noise: a look at a few of them saves trying them all.
Result<size_t> compress_plane(Bytes plane, std::vector<std::byte>& out) {
  if (plane.size() > 2 * kSampleBytes) {
    LMEMO_ASSIGN(const size_t sample, compress(Compression::zstd, CompressionLevel::standard,
                                               plane.subspan(plane.size() / 2, kSampleBytes), out));
    if (!is_worth_it(sample, kSampleBytes)) return size_t{0};
  }
  LMEMO_ASSIGN(const size_t written, compress(Compression::zstd, CompressionLevel::standard, plane, out));
  return is_worth_it(written, plane.size()) ? written : 0;
}

void write_u32(std::string& out, size_t at, uint32_t value) {
  for (size_t i = 0; i < sizeof value; ++i) out[at + i] = static_cast<char>(value >> 8 * i);
}

Error damaged(const std::string& what) { return {ErrorCode::corruption, "byte planes: " + what}; }

// One plane from the front of `rest`: a view of it where it lies, or of `buffer`.
Result<const uint8_t*> take_plane(Bytes& rest, uint32_t compressed_bytes, std::span<uint8_t> buffer) {
  const size_t byte_count = compressed_bytes == 0 ? buffer.size() : compressed_bytes;
  if (byte_count > rest.size())
    return damaged(std::to_string(rest.size()) + " bytes are left, expected " + std::to_string(byte_count));
  const Bytes plane = rest.first(byte_count);
  rest = rest.subspan(byte_count);
  if (compressed_bytes == 0) return reinterpret_cast<const uint8_t*>(plane.data());
  LMEMO_TRY(decompress(Compression::zstd, plane, std::as_writable_bytes(buffer)));
  return static_cast<const uint8_t*>(buffer.data());
}

}  // namespace

Status compress_halves(std::span<const uint16_t> numbers, std::string& out) {
  Planes& planes = planes_of_thread();
  while (!numbers.empty()) {
    const std::span<const uint16_t> block = numbers.first(std::min(numbers.size(), kBlockNumbers));
    numbers = numbers.subspan(block.size());
    chosen_float_kernel().split_planes(block.data(), planes.front.data(), planes.back.data(), block.size());
    const size_t head = out.size();
    out.append(8, '\0');
    size_t place = head;
    for (const std::vector<uint8_t>* plane : {&planes.front, &planes.back}) {
      const Bytes bytes = std::as_bytes(std::span(*plane).first(block.size()));
      LMEMO_ASSIGN(const size_t written, compress_plane(bytes, planes.compressed));
      write_u32(out, place, static_cast<uint32_t>(written));
      out.append(text_of(written == 0 ? bytes : Bytes(planes.compressed).first(written)));
      place += sizeof(uint32_t);
    }
  }
  return {};
}

Status decompress_halves(Bytes compressed, std::span<uint16_t> out) {
  Planes& planes = planes_of_thread();
  while (!out.empty()) {
    const std::span<uint16_t> block = out.first(std::min(out.size(), kBlockNumbers));
    out = out.subspan(block.size());
    if (compressed.size() < 8) return damaged("they end in the head of a block");
    const auto front_bytes = load_le<uint32_t>(compressed.data()),
               back_bytes = load_le<uint32_t>(compressed.data() + 4);
    compressed = compressed.subspan(8);
    LMEMO_ASSIGN(const uint8_t* const front,
                 take_plane(compressed, front_bytes, std::span(planes.front).first(block.size())));
    LMEMO_ASSIGN(const uint8_t* const back,
                 take_plane(compressed, back_bytes, std::span(planes.back).first(block.size())));
    chosen_float_kernel().join_planes(front, back, block.data(), block.size());
  }
  if (!compressed.empty()) return damaged(std::to_string(compressed.size()) + " bytes too many");
  return {};
}

}  // namespace lmemo
