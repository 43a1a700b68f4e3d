// LZ4 and zstd behind one pair of functions. Sizes are known beforehand: who stores compressed bytes stores the length
// of what they were made of, checks it against a limit of his own, and asks for exactly that much back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "lmemo/bytes.h"
#include "lmemo/result.h"

namespace lmemo {

// The numbers are written to disk.
enum class Compression : uint8_t { none = 0, lz4 = 1, zstd = 2 };

// How hard to try. The bytes of one level are the same on every machine with the same library version; whoever
// promises identical files over versions keeps the uncompressed digest as well.
enum class CompressionLevel : uint8_t { fast, standard, max };

std::string_view name_of(Compression compression);
std::optional<Compression> compression_named(std::string_view name);

// A buffer of this size always suffices for compress().
size_t max_compressed_bytes(Compression compression, size_t byte_count);

// Returns how many bytes of `out` were written. Fails if `out` is too small, and past 2 GB for LZ4.
Result<size_t> compress(Compression compression, CompressionLevel level, Bytes bytes,
                        std::span<std::byte> out);

// Fills `out` exactly, or says corruption: bytes from disk are hostile, and never write past it.
Status decompress(Compression compression, Bytes compressed, std::span<std::byte> out);

}  // namespace lmemo
