// Packing, size and decoding of chunks, in CPU time of one thread.
//
//   chunks_bench                       lengths and ids drawn by chance, alike to those of texts
//   chunks_bench IDS.u16               real ids, two bytes each, documents ended by 50256
//   chunks_bench IDS.u16 zstd default  one way to write them
//
// From ids that are there already. chunks_bench.py runs this beside the peers, on ids of a real corpus.
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <string_view>

#include "faces/chunks/chunk_writer.h"
#include "packing/packer.h"

using namespace lmemo;
using namespace lmemo::chunks;

namespace {

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void bench_packing() {
  std::mt19937 random(1);
  std::lognormal_distribution<double> lengths_of_texts(5.5, 1.3);
  std::vector<uint32_t> lengths(2'000'000);
  for (uint32_t& length : lengths) length = 1 + static_cast<uint32_t>(lengths_of_texts(random));
  for (const uint32_t row_tokens : {512u, 2048u, 8192u}) {
    // As chunks do it: 8,000 rows' worth of documents at a time.
    double seconds = 0, tokens = 0, room = 0;
    for (size_t first = 0; first < lengths.size();) {
      size_t last = first;
      for (uint64_t sum = 0; last < lengths.size() && sum < uint64_t{8000} * row_tokens; ++last)
        sum += lengths[last];
      const auto part = std::span(lengths).subspan(first, last - first);
      const double start = cpu_seconds();
      const PackedRows packed = pack(PackStrategy::best_fit, part, row_tokens);
      seconds += cpu_seconds() - start;
      for (const uint32_t length : part) tokens += length;
      room += static_cast<double>(packed.row_count()) * row_tokens;
      first = last;
    }
    std::printf("pack best_fit %5u   %6.1f million documents/s   %.3f %% filled\n", row_tokens,
                static_cast<double>(lengths.size()) / seconds * 1e-6, 100 * tokens / room);
  }
}

std::vector<uint32_t> ids_of(const char* file) {
  std::vector<uint32_t> ids;
  if (file != nullptr) {
    std::ifstream stream(file, std::ios::binary);
    for (uint16_t id; stream.read(reinterpret_cast<char*>(&id), sizeof id);) ids.push_back(id);
    return ids;
  }
  std::mt19937 random(2);
  while (ids.size() < 8'000'000) {  // Zipf's law, and phrases that come again.
    if (ids.size() > 10000 && random() % 8 == 0) {
      const size_t from = ids.size() - 1 - random() % 10000;
      for (size_t at = from, end = from + random() % 12; at < end; ++at) ids.push_back(ids[at]);
    } else {
      ids.push_back(random() % 400 == 0 ? 50256
                                        : static_cast<uint32_t>(std::exp(
                                              std::uniform_real_distribution<double>(0, 10.8)(random))) %
                                              50256);
    }
  }
  return ids;
}

void bench_coding(const char* file, std::string_view only_compression, std::string_view only_level) {
  const std::vector<uint32_t> ids = ids_of(file);
  std::vector<uint64_t> offsets = {0};
  for (size_t at = 0; at < ids.size(); ++at)
    if (ids[at] == 50256 || at + 1 == ids.size()) offsets.push_back(at + 1);
  const Path directory =
      std::filesystem::temp_directory_path() / ("lmemo-chunks-bench-" + std::to_string(::time(nullptr)));
  std::filesystem::create_directories(directory);
  ChunkParameters parameters;
  parameters.vocab_size = 50257;
  for (const auto& [compression, level] : {std::pair("none", "default"),
                                           {"lz4", "fast"},
                                           {"lz4", "default"},
                                           {"lz4", "max"},
                                           {"zstd", "fast"},
                                           {"zstd", "default"},
                                           {"zstd", "max"}}) {
    if (!only_compression.empty() && (only_compression != compression || only_level != level)) continue;
    parameters.compression = compression;
    parameters.level = level;
    double write_seconds = 0, read_seconds = 0, bytes = 0, tokens = 0;
    // Chunks of about 8,000 rows.
    for (size_t first = 0; first + 1 < offsets.size();) {
      size_t last = first + 1;
      while (last + 1 < offsets.size() && offsets[last] - offsets[first] < 8000 * 512) ++last;
      std::vector<uint64_t> part(offsets.begin() + static_cast<ptrdiff_t>(first),
                                 offsets.begin() + static_cast<ptrdiff_t>(last) + 1);
      ChunkContent content;
      content.tokens = std::span(ids).subspan(part.front(), part.back() - part.front());
      for (uint64_t& offset : part) offset -= offsets[first];
      content.offsets = part;
      const Path path = directory / (std::to_string(first) + compression + level);
      double start = cpu_seconds();
      const auto written = write_chunk(real_file_system(), path, parameters, content);
      write_seconds += cpu_seconds() - start;
      if (!written.ok()) return (void)std::puts(written.error().describe().c_str());
      bytes += static_cast<double>(written->bytes);
      tokens += static_cast<double>(written->counts.tokens);
      const auto opened = ChunkFile::open(path);
      ChunkRows rows;
      start = cpu_seconds();
      for (int round = 0; round < 3; ++round)
        for (uint32_t block = 0; block < (*opened)->block_count(); ++block)
          if (!(*opened)->read_block(block, rows).ok()) return (void)std::puts("cannot read");
      read_seconds += (cpu_seconds() - start) / 3;
      first = last;
    }
    std::printf(
        "%-5s %-8s %.3f bytes/token   pack, compress, hash, write %6.1f   decode %7.1f million tokens/s\n",
        compression, level, bytes / tokens, tokens / write_seconds * 1e-6, tokens / read_seconds * 1e-6);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) bench_packing();
  bench_coding(count > 1 ? words[1] : nullptr, count > 3 ? words[2] : "", count > 3 ? words[3] : "");
}
