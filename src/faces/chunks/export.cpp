#include "faces/chunks/export.h"

#include <cstdio>
#include <fstream>
#include <functional>

#include "base/file_system.h"
#include "base/json_writer.h"
#include "base/little_endian.h"
#include "codec/arrow_stream.h"

namespace lmemo::chunks {
namespace {

// Appends to a file, and remembers that something went wrong until it is asked.
class OutFile {
 public:
  explicit OutFile(const Path& path) : path_(path), stream_(path, std::ios::binary) {}
  void write(Bytes bytes) {
    stream_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  template <typename T>
  void write_all(std::span<const T> values) {
    write(std::as_bytes(values));
  }
  void at_start(std::string_view bytes) {
    stream_.seekp(0).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  Status finish() {
    stream_.close();
    if (stream_.fail())
      return Error{ErrorCode::io_error, "cannot write " + path_.string() + "; is the disk full?"};
    return {};
  }

 private:
  const Path path_;
  std::ofstream stream_;
};

Status for_each_block(const ChunkSet& set, const Watch& watch,
                      const std::function<Status(const ChunkRows&)>& visit) {
  ChunkRows rows;
  for (uint64_t block = 0; block < set.block_count(); ++block) {
    LMEMO_TRY(set.read_block(block, rows));
    LMEMO_TRY(visit(rows));
    watch.report({"export", block + 1, set.block_count(), "blocks"});
    if (watch.stopped()) return Error{ErrorCode::interrupted, "interrupted"};
  }
  return {};
}

// Ids as two bytes where the vocabulary allows, as readers of these formats expect; else four.
void write_tokens(OutFile& file, const ChunkSet& set, const ChunkRows& rows) {
  if (set.parameters().vocab_size > 65536) return file.write_all<uint32_t>(rows.tokens);
  const std::vector<uint16_t> narrow(rows.tokens.begin(), rows.tokens.end());
  file.write_all<uint16_t>(narrow);
}

// Header of an .npy file of one dimension, always as long, so that it can be written when the length is known.
std::string npy_header(const std::string& type, uint64_t count) {
  std::string text =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }";
  text.resize(117, ' ');
  text += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\0';
  append_le(header, static_cast<uint16_t>(text.size()));
  return header + text;
}

Status export_npy(const ChunkSet& set, const Path& directory, const Watch& watch) {
  OutFile tokens(directory / "tokens.npy"), offsets(directory / "row_offsets.npy"),
      lengths(directory / "seq_lengths.npy"), pieces(directory / "piece_offsets.npy");
  const std::string token_type = set.parameters().vocab_size > 65536 ? "<u4" : "<u2";
  tokens.write(bytes_of(npy_header(token_type, set.token_count())));
  offsets.write(bytes_of(npy_header("<i8", set.row_count() + 1)));
  lengths.write(bytes_of(npy_header("<i4", 0)));
  pieces.write(bytes_of(npy_header("<i8", set.row_count() + 1)));
  int64_t token = 0, piece = 0;
  LMEMO_TRY(for_each_block(set, watch, [&](const ChunkRows& rows) -> Status {
    write_tokens(tokens, set, rows);
    for (size_t row = 0; row < rows.row_count(); ++row) {
      offsets.write_all<int64_t>({{token}});
      pieces.write_all<int64_t>({{piece}});
      token += static_cast<int64_t>(rows.tokens_of(row).size());
      piece += static_cast<int64_t>(rows.pieces_of(row).size());
      for (const ChunkPiece& part : rows.pieces_of(row)) lengths.write_all<uint32_t>({{part.length}});
    }
    return {};
  }));
  offsets.write_all<int64_t>({{token}});
  pieces.write_all<int64_t>({{piece}});
  lengths.at_start(npy_header("<i4", static_cast<uint64_t>(piece)));
  for (OutFile* const file : {&tokens, &offsets, &lengths, &pieces}) LMEMO_TRY(file->finish());
  return {};
}

Status export_megatron(const ChunkSet& set, const Path& directory, const Watch& watch) {
  const bool is_wide = set.parameters().vocab_size > 65536;
  OutFile bin(directory / "rows.bin"), idx(directory / "rows.idx");
  std::vector<int32_t> lengths;
  LMEMO_TRY(for_each_block(set, watch, [&](const ChunkRows& rows) -> Status {
    write_tokens(bin, set, rows);
    for (size_t row = 0; row < rows.row_count(); ++row)
      lengths.push_back(static_cast<int32_t>(rows.tokens_of(row).size()));
    return {};
  }));
  std::string head("MMIDIDX\0\0", 9);
  append_le(head, uint64_t{1});
  append_le(head, static_cast<uint8_t>(is_wide ? 4 : 8));  // int32, uint16
  append_le(head, static_cast<uint64_t>(lengths.size()));
  append_le(head, static_cast<uint64_t>(lengths.size() + 1));
  idx.write(bytes_of(head));
  idx.write_all<int32_t>(lengths);
  int64_t pointer = 0;
  for (const int32_t length : lengths) {
    idx.write_all<int64_t>({{pointer}});
    pointer += int64_t{length} * (is_wide ? 4 : 2);
  }
  for (int64_t document = 0; document <= static_cast<int64_t>(lengths.size()); ++document)
    idx.write_all<int64_t>({{document}});
  LMEMO_TRY(bin.finish());
  return idx.finish();
}

// Those who stream a set fetch and mix it by shards; offsets in one have four bytes.
constexpr uint64_t kMdsShardBytes = uint64_t{16} << 20;

// As streaming's MDSReader wants it, in the shard and in the index.
void describe_mds_shard(JsonWriter& json, bool is_wide) {
  json.begin_array("column_encodings");
  json.value(is_wide ? "ndarray:uint32" : "ndarray:uint16");
  json.value("ndarray:uint32");
  json.end_array();
  json.begin_array("column_names");
  json.value("input_ids");
  json.value("seq_lengths");
  json.end_array();
  json.begin_array("column_sizes");
  json.null();
  json.null();
  json.end_array();
  json.member_null("compression");
  json.member("format", "mds");
  json.begin_array("hashes");
  json.end_array();
  json.member("size_limit", kMdsShardBytes);
  json.member("version", uint64_t{2});
}

// An array of one dimension: how many bytes its length has, its length, its numbers.
template <typename Number>
std::string mds_array(std::span<const Number> numbers) {
  std::string out;
  const size_t count = numbers.size();
  const uint8_t code = count < 1u << 8 ? 0 : count < 1u << 16 ? 1 : 2;
  append_le(out, static_cast<uint8_t>(1 << 2 | code));
  if (code == 0) append_le(out, static_cast<uint8_t>(count));
  if (code == 1) append_le(out, static_cast<uint16_t>(count));
  if (code == 2) append_le(out, static_cast<uint32_t>(count));
  const Bytes bytes = std::as_bytes(numbers);
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return out;
}

std::string mds_sample(const ChunkRows& rows, size_t row, bool is_wide) {
  const std::span<const uint32_t> tokens = rows.tokens_of(row);
  const std::vector<uint16_t> narrow(tokens.begin(), tokens.end());
  std::vector<uint32_t> lengths;
  for (const ChunkPiece& piece : rows.pieces_of(row)) lengths.push_back(piece.length);
  const std::string ids = is_wide ? mds_array(tokens) : mds_array(std::span<const uint16_t>(narrow));
  const std::string pieces = mds_array(std::span<const uint32_t>(lengths));
  std::string sample;
  append_le(sample, static_cast<uint32_t>(ids.size()));
  append_le(sample, static_cast<uint32_t>(pieces.size()));
  return sample + ids + pieces;
}

Status export_mds(const ChunkSet& set, const Path& directory, const Watch& watch) {
  const bool is_wide = set.parameters().vocab_size > 65536;
  JsonWriter shard_json;
  shard_json.begin_object();
  describe_mds_shard(shard_json, is_wide);
  shard_json.end_object();
  JsonWriter index;
  index.begin_object();
  index.begin_array("shards");
  std::string samples;
  std::vector<uint32_t> ends;
  uint64_t shards = 0;
  const auto write_shard = [&]() -> Status {
    char name[24];
    std::snprintf(name, sizeof name, "shard.%05u.mds", static_cast<unsigned>(shards++));
    const auto start = static_cast<uint32_t>(sizeof(uint32_t) * (ends.size() + 2) + shard_json.text().size());
    for (uint32_t& end : ends) end += start;
    OutFile file(directory / name);
    file.write_all<uint32_t>({{static_cast<uint32_t>(ends.size()), start}});
    file.write_all<uint32_t>(ends);
    file.write(bytes_of(shard_json.text()));
    file.write(bytes_of(samples));
    index.begin_object();
    describe_mds_shard(index, is_wide);
    index.begin_object("raw_data");
    index.member("basename", name);
    index.member("bytes", uint64_t{start} + samples.size());
    index.begin_object("hashes");
    index.end_object();
    index.end_object();
    index.member("samples", static_cast<uint64_t>(ends.size()));
    index.member_null("zip_data");
    index.end_object();
    samples.clear();
    ends.clear();
    return file.finish();
  };
  LMEMO_TRY(for_each_block(set, watch, [&](const ChunkRows& rows) -> Status {
    for (size_t row = 0; row < rows.row_count(); ++row) {
      const std::string sample = mds_sample(rows, row, is_wide);
      if (!ends.empty() && samples.size() + sample.size() > kMdsShardBytes) {
        if (Status written = write_shard(); !written.ok()) return written;
      }
      samples += sample;
      ends.push_back(static_cast<uint32_t>(samples.size()));
    }
    return {};
  }));
  if (!ends.empty()) LMEMO_TRY(write_shard());
  index.end_array();
  index.member("version", uint64_t{2});
  index.end_object();
  OutFile index_file(directory / "index.json");
  index_file.write(bytes_of(index.text()));
  return index_file.finish();
}

Status export_arrow(const ChunkSet& set, const Path& directory, const Watch& watch) {
  OutFile data(directory / "data-00000-of-00001.arrow");
  ArrowStreamWriter writer({{"input_ids", ArrowType::int32, true}, {"seq_lengths", ArrowType::int32, true}},
                           [&](Bytes bytes) -> Status {
                             data.write(bytes);
                             return {};
                           });
  LMEMO_TRY(writer.begin());
  LMEMO_TRY(for_each_block(set, watch, [&](const ChunkRows& rows) -> Status {
    std::vector<uint32_t> lengths;
    for (const ChunkPiece& piece : rows.pieces) lengths.push_back(piece.length);
    const std::vector<int32_t> tokens(rows.row_tokens.begin(), rows.row_tokens.end()),
        pieces(rows.row_pieces.begin(), rows.row_pieces.end());
    const std::vector<ArrowColumnData> columns = {{tokens, std::as_bytes(std::span(rows.tokens))},
                                                  {pieces, std::as_bytes(std::span(lengths))}};
    return writer.batch(rows.row_count(), columns);
  }));
  LMEMO_TRY(writer.end());
  LMEMO_TRY(data.finish());
  JsonWriter state;
  state.begin_object();
  state.begin_array("_data_files");
  state.begin_object();
  state.member("filename", "data-00000-of-00001.arrow");
  state.end_object();
  state.end_array();
  state.member("_fingerprint", set.identity().hex().substr(0, 16));
  state.member_null("_format_columns");
  state.begin_object("_format_kwargs");
  state.end_object();
  state.member_null("_format_type");
  state.member("_output_all_columns", false);
  state.member_null("_split");
  state.end_object();
  OutFile state_file(directory / "state.json"), info(directory / "dataset_info.json");
  state_file.write(bytes_of(state.text()));
  info.write(bytes_of("{}"));
  LMEMO_TRY(state_file.finish());
  return info.finish();
}

}  // namespace

Status export_rows(const ChunkSet& set, const std::string& format, const Path& directory,
                   const Watch& watch) {
  std::error_code error;
  if (std::filesystem::exists(directory, error))
    return Error{ErrorCode::invalid_argument, directory.string() + " is there already; name a new directory"};
  // It has its name when it is whole. What a dead export left is in the way of nobody.
  const Path part = directory.string() + ".part";
  FileSystem& files = real_file_system();
  std::filesystem::create_directories(part, error);
  if (error) return Error{ErrorCode::io_error, "cannot make " + part.string() + ": " + error.message()};
  auto lock = files.try_lock(part / "lock");
  if (!lock.ok())
    return lock.error().code == ErrorCode::busy
               ? Error{ErrorCode::busy, "another process writes " + part.string()}
               : lock.error();
  for (const auto& left : std::filesystem::directory_iterator(part, error))
    if (left.path().filename() != "lock") std::filesystem::remove_all(left.path(), error);
  Status status = format == "megatron" ? export_megatron(set, part, watch)
                  : format == "arrow"  ? export_arrow(set, part, watch)
                  : format == "mds"    ? export_mds(set, part, watch)
                                       : export_npy(set, part, watch);
  if (status.ok()) status = files.remove(part / "lock");
  if (status.ok()) status = files.rename(part, directory);
  if (!status.ok()) std::filesystem::remove_all(part, error);
  return status;
}

}  // namespace lmemo::chunks
