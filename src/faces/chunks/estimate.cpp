#include "faces/chunks/estimate.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/tick_clock.h"
#include "faces/chunks/builder.h"
#include "faces/chunks/chunk_writer.h"
#include "faces/chunks/documents.h"
#include "sources/byte_stream.h"

namespace lmemo::chunks {
namespace {

constexpr size_t kWindows = 32;
constexpr uint64_t kWindowBytes = uint64_t{128} << 10;

struct Window {
  std::string bytes;  // Whole documents, and padding.
  SourceType type = SourceType::json_lines;
  uint64_t documents = 0, tokens = 0;
  uint64_t size() const { return bytes.size() - kRangePadding; }
};

class Sampling {
 public:
  Sampling(const std::vector<InputFile>& files, const Plan& plan, const Tokenizer& tokenizer)
      : files_(files), plan_(plan), tokenizer_(tokenizer) {}

  Result<Estimate> run() {
    LMEMO_ASSIGN(field_, FieldPath::parse(plan_.parameters.text_field));
    LMEMO_TRY(take_windows());
    // The first pass meets every piece for the first time, which a long build does not.
    LMEMO_TRY(tokenise());
    const int64_t start_ns = monotonic_ns();
    LMEMO_TRY(tokenise());
    LMEMO_ASSIGN(const WrittenChunk written, write());
    const double seconds = static_cast<double>(monotonic_ns() - start_ns) * 1e-9;

    Estimate found;
    found.files = files_.size();
    found.is_from_starts = is_from_starts_;
    found.source_bytes = source_bytes_;
    for (const Window& window : windows_) found.sampled_bytes += window.size();
    if (found.sampled_bytes == 0 || tokens_.empty()) return found;
    // Of what the sample stands for.
    double share = source_bytes_ / static_cast<double>(found.sampled_bytes);
    found.documents = static_cast<double>(documents_) * share;
    if (const auto limit = static_cast<double>(plan_.limit_documents); limit > 0 && found.documents > limit) {
      share *= limit / found.documents;
      found.documents = limit;
    }
    const ChunkParameters& parameters = plan_.parameters;
    const double room = static_cast<double>(written.counts.rows) * parameters.sequence_length;
    // A few rows say nothing about how well many would be filled.
    const double filled = written.counts.rows >= 100 ? static_cast<double>(tokens_.size()) / room : 1;
    found.tokens = static_cast<double>(tokens_.size()) * share;
    found.rows = std::ceil(found.tokens / parameters.sequence_length / filled);
    found.chunks = std::ceil(found.rows / static_cast<double>(plan_.chunk_sequences));
    found.disk_bytes =
        found.tokens * static_cast<double>(written.bytes) / static_cast<double>(tokens_.size());
    found.seconds = seconds * share;
    found.relative_error = error();
    const double chunk_bytes = static_cast<double>(plan_.chunk_sequences) * parameters.sequence_length *
                               static_cast<double>(found.sampled_bytes) / static_cast<double>(tokens_.size());
    found.memory_bytes_per_worker =
        kBaseMemory + memory_for(static_cast<uint64_t>(std::min(source_bytes_, chunk_bytes)));
    return found;
  }

 private:
  // Evenly over all bytes of all files, in the order given.
  Status take_windows() {
    std::vector<uint64_t> ends;
    uint64_t total = 0;
    for (const InputFile& file : files_) {
      std::error_code ignored;
      ends.push_back(total += std::filesystem::file_size(file.path, ignored));
    }
    is_whole_ = total <= kWindows * kWindowBytes;
    if (is_whole_) {
      for (size_t at = 0; at < files_.size(); ++at) LMEMO_TRY(take_start(at, UINT64_MAX));
    } else {
      for (size_t number = 0; number < kWindows; ++number) {
        const uint64_t place = total / kWindows * number + total / kWindows / 2;
        const auto file =
            static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), place) - ends.begin());
        LMEMO_TRY(take(file, place - (file == 0 ? 0 : ends[file - 1])));
      }
    }
    source_bytes_ = static_cast<double>(total);
    if (packed_bytes_ > 0) {  // Compressed files are as much larger as their starts.
      double grown = 0;
      for (size_t at = 0; at < files_.size(); ++at) {
        const auto bytes = static_cast<double>(ends[at] - (at == 0 ? 0 : ends[at - 1]));
        LMEMO_ASSIGN(const auto stream, ByteStream::open(files_[at].path));
        grown += stream->encoding() == FileEncoding::plain
                     ? bytes
                     : bytes * static_cast<double>(unpacked_bytes_) / static_cast<double>(packed_bytes_);
      }
      source_bytes_ = grown;
    }
    return {};
  }

  Status take(size_t number, uint64_t offset) {
    const InputFile& file = files_[number];
    LMEMO_ASSIGN(const auto stream, ByteStream::open(file.path));
    if (stream->encoding() != FileEncoding::plain) {
      if (number == last_packed_) return {};  // Its start was taken.
      last_packed_ = number;
      is_from_starts_ = true;
      return take_start(number, 4 * kWindowBytes);
    }
    std::error_code ignored;
    const uint64_t size = std::filesystem::file_size(file.path, ignored);
    if (size <= 2 * kWindowBytes)
      return number == last_small_ ? Status() : take_start(last_small_ = number, UINT64_MAX);
    offset = std::min(offset, size - kWindowBytes);
    LMEMO_TRY(stream->seek(offset));
    std::string bytes(kWindowBytes, '\0');
    LMEMO_ASSIGN(const size_t count, stream->read(bytes));
    bytes.resize(count);
    if (file.type == SourceType::json_lines) {
      const size_t first = bytes.find('\n'), last = bytes.rfind('\n');
      if (first == last) return take_start(number, UINT64_MAX);  // A line that is longer than a window.
      bytes = bytes.substr(first + 1, last - first);
    } else {
      while (!bytes.empty() && (static_cast<unsigned char>(bytes.front()) & 0xc0) == 0x80) bytes.erase(0, 1);
      while (!bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80) != 0) bytes.pop_back();
    }
    add(std::move(bytes), file.type);
    return {};
  }

  Status take_start(size_t number, uint64_t most) {
    const InputFile& file = files_[number];
    LMEMO_ASSIGN(const auto stream, ByteStream::open(file.path));
    std::string bytes;
    while (bytes.size() < most) {
      const size_t had = bytes.size(), wanted = static_cast<size_t>(std::min<uint64_t>(most - had, 4 << 20));
      bytes.resize(had + wanted);
      LMEMO_ASSIGN(const size_t count, stream->read(std::span(bytes).subspan(had)));
      bytes.resize(had + count);
      if (count < wanted) break;
    }
    if (stream->encoding() != FileEncoding::plain) {
      unpacked_bytes_ += bytes.size();
      packed_bytes_ += stream->file_bytes_read();
    }
    if (bytes.size() == most && file.type == SourceType::json_lines && bytes.rfind('\n') != std::string::npos)
      bytes.resize(bytes.rfind('\n') + 1);
    add(std::move(bytes), file.type);
    return {};
  }

  void add(std::string bytes, SourceType type) {
    bytes.append(kRangePadding, '\0');
    windows_.push_back({std::move(bytes), type});
  }

  Status tokenise() {
    const ChunkParameters& parameters = plan_.parameters;
    EncodeOptions options;
    options.add_special_tokens = false;
    options.truncation = TruncationOptions{};
    options.padding = PaddingOptions{.length = 0};
    tokens_.clear();
    offsets_.assign(1, 0);
    documents_ = 0;
    for (Window& window : windows_) {
      const size_t before = tokens_.size(), documents_before = documents_;
      Status status;
      for_each_document(
          window.type, std::string_view(window.bytes).substr(0, window.size()), 0, 1, parser_, field_,
          [&](const Document& document) {
            ++documents_;
            if (!status.ok() || !document.verdict.ok() || document.text.empty()) return;
            const auto ids = tokenizer_.encode(document.text, options);
            if (!ids.ok()) return void(status = ids.error());
            if (ids->size() + parameters.bos.has_value() + parameters.eos.has_value() < parameters.min_tokens)
              return;
            if (parameters.bos) tokens_.push_back(*parameters.bos);
            tokens_.insert(tokens_.end(), ids->begin(), ids->end());
            if (parameters.eos) tokens_.push_back(*parameters.eos);
            offsets_.push_back(tokens_.size());
          });
      LMEMO_TRY(status);
      window.tokens = tokens_.size() - before;
      window.documents = documents_ - documents_before;
    }
    return {};
  }

  Result<WrittenChunk> write() const {
    std::error_code error;
    const Path path =
        std::filesystem::temp_directory_path(error) / ("lmemo-estimate-" + std::to_string(::getpid()));
    FileSystem& files = real_file_system();
    LMEMO_TRY(files.remove(path));
    ChunkContent content;
    content.tokens = tokens_;
    content.offsets = offsets_;
    LMEMO_ASSIGN(const WrittenChunk written, write_chunk(files, path, plan_.parameters, content));
    LMEMO_TRY(files.remove(path));
    return written;
  }

  // What tokens per byte differ by from window to window; other bytes than those looked at may differ more.
  double error() const {
    if (is_whole_) return 0;
    std::vector<double> densities;
    for (const Window& window : windows_)
      if (window.size() > 0)
        densities.push_back(static_cast<double>(window.tokens) / static_cast<double>(window.size()));
    double mean = 0, squares = 0;
    const auto count = static_cast<double>(densities.size());
    for (const double density : densities) mean += density / count;
    for (const double density : densities) squares += (density - mean) * (density - mean);
    if (densities.size() < 4 || mean <= 0) return 0.5;
    // Student's t for 31 others.
    const double found = 2.04 * std::sqrt(squares / (count - 1) / count) / mean;
    return is_from_starts_ ? std::max(found, 0.1) : found;
  }

  const std::vector<InputFile>& files_;
  const Plan& plan_;
  const Tokenizer& tokenizer_;
  FieldPath field_;
  JsonLineParser parser_;
  std::vector<Window> windows_;
  std::vector<uint32_t> tokens_;
  std::vector<uint64_t> offsets_;
  uint64_t documents_ = 0;
  double source_bytes_ = 0;
  uint64_t packed_bytes_ = 0, unpacked_bytes_ = 0;
  size_t last_packed_ = SIZE_MAX, last_small_ = SIZE_MAX;
  bool is_whole_ = false, is_from_starts_ = false;
};

}  // namespace

Result<Estimate> estimate(const std::vector<InputFile>& files, const Plan& plan, const Tokenizer& tokenizer) {
  return Sampling(files, plan, tokenizer).run();
}

}  // namespace lmemo::chunks
