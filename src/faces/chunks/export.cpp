#include "faces/chunks/export.h"

#include <fstream>
#include <functional>

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
  std::filesystem::create_directories(directory, error);
  if (error) return Error{ErrorCode::io_error, "cannot make " + directory.string() + ": " + error.message()};
  const Status status = format == "megatron" ? export_megatron(set, directory, watch)
                        : format == "arrow"  ? export_arrow(set, directory, watch)
                                             : export_npy(set, directory, watch);
  if (!status.ok()) std::filesystem::remove_all(directory, error);
  return status;
}

}  // namespace lmemo::chunks
