#include "codec/compression.h"

#include <lz4.h>
#include <lz4hc.h>
#include <zstd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace lmemo {
namespace {

// Contexts are large and slow to make; each thread keeps its own for as long as it lives.
struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

ZSTD_CCtx* compressing() {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  return context.get();
}

ZSTD_DCtx* decompressing() {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  return context.get();
}

// Made for token ids of two bytes. The standard is level 1 with shorter matches, and a hash table that stays in the nearest cache: 0.686
// bytes a token at the speed of level 1, which has 0.698; level 2 has 0.66 at two thirds of it.
struct ZstdLevel {
  int level;
  int hash_log = 0, min_match = 0;  // 0: as the level has them.
};
constexpr ZstdLevel kZstdLevels[] = {{-1}, {1, 13, 6}, {19}};

// Plain LZ4 by its acceleration, or LZ4 HC by its level: a sixth smaller, at a fortieth of the speed.
struct Lz4Level {
  int acceleration;
  int high_level = 0;
};
constexpr Lz4Level kLz4Levels[] = {{4}, {1}, {0, LZ4HC_CLEVEL_MAX}};

Error damaged(Compression compression, const std::string& what) {
  return {ErrorCode::corruption, std::string(name_of(compression)) + " block: " + what};
}

Error failed(Compression compression, const std::string& what) {
  return {ErrorCode::invalid_argument,
          "cannot compress with " + std::string(name_of(compression)) + ": " + what};
}

Result<size_t> compress_lz4(CompressionLevel level, Bytes bytes, std::span<std::byte> out) {
  if (bytes.size() > LZ4_MAX_INPUT_SIZE)
    return failed(Compression::lz4,
                  std::to_string(bytes.size()) + " bytes; at most " + std::to_string(LZ4_MAX_INPUT_SIZE));
  const char* from = reinterpret_cast<const char*>(bytes.data());
  char* to = reinterpret_cast<char*>(out.data());
  const int from_bytes = static_cast<int>(bytes.size());
  const int to_bytes = static_cast<int>(std::min<size_t>(out.size(), LZ4_COMPRESSBOUND(LZ4_MAX_INPUT_SIZE)));
  const auto [acceleration, high_level] = kLz4Levels[static_cast<size_t>(level)];
  const int written = high_level > 0 ? LZ4_compress_HC(from, to, from_bytes, to_bytes, high_level)
                                     : LZ4_compress_fast(from, to, from_bytes, to_bytes, acceleration);
  if (written <= 0) return failed(Compression::lz4, "the buffer is too small");
  return static_cast<size_t>(written);
}

Result<size_t> compress_zstd(CompressionLevel level, Bytes bytes, std::span<std::byte> out) {
  ZSTD_CCtx* const context = compressing();
  if (!context) return failed(Compression::zstd, "out of memory");
  const ZstdLevel& wanted = kZstdLevels[static_cast<size_t>(level)];
  for (const auto& [parameter, number] : {std::pair(ZSTD_c_compressionLevel, wanted.level),
                                          {ZSTD_c_hashLog, wanted.hash_log},
                                          {ZSTD_c_minMatch, wanted.min_match}})
    if (const size_t set = ZSTD_CCtx_setParameter(context, parameter, number); ZSTD_isError(set))
      return failed(Compression::zstd, ZSTD_getErrorName(set));
  const size_t written = ZSTD_compress2(context, out.data(), out.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(written)) return failed(Compression::zstd, ZSTD_getErrorName(written));
  return written;
}

Status decompress_lz4(Bytes compressed, std::span<std::byte> out) {
  if (compressed.size() > INT32_MAX || out.size() > INT32_MAX) return damaged(Compression::lz4, "too large");
  const int written = LZ4_decompress_safe(reinterpret_cast<const char*>(compressed.data()),
                                          reinterpret_cast<char*>(out.data()),
                                          static_cast<int>(compressed.size()), static_cast<int>(out.size()));
  if (written < 0) return damaged(Compression::lz4, "malformed");
  if (static_cast<size_t>(written) != out.size())
    return damaged(Compression::lz4,
                   "gives " + std::to_string(written) + " bytes, expected " + std::to_string(out.size()));
  return {};
}

Status decompress_zstd(Bytes compressed, std::span<std::byte> out) {
  if (!decompressing()) return Error{ErrorCode::io_error, "zstd: out of memory"};
  const size_t written =
      ZSTD_decompressDCtx(decompressing(), out.data(), out.size(), compressed.data(), compressed.size());
  if (ZSTD_isError(written)) return damaged(Compression::zstd, ZSTD_getErrorName(written));
  if (written != out.size())
    return damaged(Compression::zstd,
                   "gives " + std::to_string(written) + " bytes, expected " + std::to_string(out.size()));
  return {};
}

}  // namespace

std::string_view name_of(Compression compression) {
  switch (compression) {
    case Compression::none: return "none";
    case Compression::lz4: return "lz4";
    case Compression::zstd: return "zstd";
  }
  return "unknown";
}

std::optional<Compression> compression_named(std::string_view name) {
  for (const Compression compression : {Compression::none, Compression::lz4, Compression::zstd})
    if (name == name_of(compression)) return compression;
  return std::nullopt;
}

size_t max_compressed_bytes(Compression compression, size_t byte_count) {
  switch (compression) {
    case Compression::none: return byte_count;
    case Compression::lz4: return byte_count + byte_count / 255 + 16;  // LZ4_compressBound, without its int.
    case Compression::zstd: return ZSTD_compressBound(byte_count);
  }
  return byte_count;
}

Result<size_t> compress(Compression compression, CompressionLevel level, Bytes bytes,
                        std::span<std::byte> out) {
  switch (compression) {
    case Compression::none:
      if (out.size() < bytes.size()) return failed(compression, "the buffer is too small");
      if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
      return bytes.size();
    case Compression::lz4: return compress_lz4(level, bytes, out);
    case Compression::zstd: return compress_zstd(level, bytes, out);
  }
  return failed(compression, "no such compression");
}

Status decompress(Compression compression, Bytes compressed, std::span<std::byte> out) {
  switch (compression) {
    case Compression::none:
      if (compressed.size() != out.size())
        return damaged(compression,
                       std::to_string(compressed.size()) + " bytes, expected " + std::to_string(out.size()));
      if (!out.empty()) std::memcpy(out.data(), compressed.data(), out.size());
      return {};
    case Compression::lz4: return decompress_lz4(compressed, out);
    case Compression::zstd: return decompress_zstd(compressed, out);
  }
  return damaged(compression, "no such compression");
}

}  // namespace lmemo
