#include "faces/dataset/split_writer.h"

#include <algorithm>
#include <cassert>

#include "base/file_system.h"
#include "base/json_writer.h"
#include "base/little_endian.h"
#include "codec/checksum.h"
#include "faces/dataset/checked_file.h"
#include "sources/byte_stream.h"

namespace lmemo::dataset {
namespace {

constexpr size_t kBatchRows = 1000;
// Long rows make batches large before they are many; borders still depend on the rows alone.
constexpr size_t kBatchIds = size_t{4} << 20;
constexpr int32_t kNotLearned = -100;
constexpr const char* kSpoolFile = "rows.spool";

std::vector<ArrowColumn> columns_for(bool is_padded) {
  std::vector<ArrowColumn> columns = {{"input_ids", ArrowType::int32, true},
                                      {"labels", ArrowType::int32, true}};
  if (is_padded) columns.push_back({"attention_mask", ArrowType::int8, true});
  return columns;
}

}  // namespace

std::string state_json(const std::string& split, const std::string& fingerprint) {
  JsonWriter json;
  json.begin_object();
  json.begin_array("_data_files");
  json.begin_object();
  json.member("filename", kDataFile);
  json.end_object();
  json.end_array();
  json.member("_fingerprint", fingerprint);
  json.member_null("_format_columns");
  json.begin_object("_format_kwargs");
  json.end_object();
  json.member_null("_format_type");
  json.member("_output_all_columns", false);
  json.member("_split", split);
  json.end_object();
  return json.text();
}

Status write_whole_file(const std::filesystem::path& path, std::string_view text) {
  LMEMO_ASSIGN(const auto file, CheckedFile::create(path));
  LMEMO_TRY(file->append(bytes_of(text)));
  return file->finish(true);
}

Result<uint64_t> file_checksum(const std::filesystem::path& path, const Watch& watch) {
  LMEMO_ASSIGN(const auto stream, ByteStream::open(path, {.is_raw = true}));
  std::string block(kCheckedBlockBytes, '\0');
  uint64_t sum = 0;
  while (true) {
    if (watch.stopped()) return Error{ErrorCode::interrupted, "while reading " + path.string()};
    LMEMO_ASSIGN(const size_t count, stream->read(block));
    if (count > 0) sum = checksum(bytes_of(std::string_view(block).substr(0, count)), sum);
    if (count < block.size()) return sum;
  }
}

SplitWriter::SplitWriter(std::filesystem::path directory, const RowLayout& layout)
    : directory_(std::move(directory)), layout_(layout) {}
SplitWriter::~SplitWriter() = default;

Result<std::unique_ptr<SplitWriter>> SplitWriter::create(const std::filesystem::path& directory,
                                                         const RowLayout& layout) {
  LMEMO_TRY(real_file_system().make_directory(directory));
  std::unique_ptr<SplitWriter> writer(new SplitWriter(directory, layout));
  if (layout.padding == RowPadding::longest) {
    LMEMO_ASSIGN(writer->spool_, CheckedFile::create(directory / kSpoolFile));
  } else {
    LMEMO_TRY(writer->start(layout.padding == RowPadding::max_length ? layout.max_length : 0));
  }
  return writer;
}

Status SplitWriter::start(uint64_t padded_length) {
  padded_length_ = padded_length;
  LMEMO_ASSIGN(file_, CheckedFile::create(directory_ / kDataFile));
  arrow_.emplace(columns_for(layout_.padding != RowPadding::none),
                 [file = file_.get()](Bytes bytes) { return file->append(bytes); });
  return arrow_->begin();
}

Status SplitWriter::add(std::span<const uint32_t> ids, std::span<const uint32_t> runs) {
  totals_.rows += 1;
  totals_.tokens += ids.size();
  totals_.longest = std::max<uint64_t>(totals_.longest, ids.size());
  for (size_t run = 1; run < runs.size(); run += 2) totals_.learned_tokens += runs[run];
  return spool_ ? spool_row(ids, runs) : write_row(ids, runs);
}

Status SplitWriter::write_row(std::span<const uint32_t> ids, std::span<const uint32_t> runs) {
  const size_t begin = ids_.size();
  const size_t padded = std::max<size_t>(ids.size(), padded_length_);
  ids_.resize(begin + padded);
  labels_.resize(begin + padded);
  std::copy(ids.begin(), ids.end(), ids_.begin() + static_cast<ptrdiff_t>(begin));
  size_t at = begin;
  for (size_t run = 0; run < runs.size(); ++run) {
    if (run % 2 == 1) {
      std::copy_n(ids_.begin() + static_cast<ptrdiff_t>(at), runs[run],
                  labels_.begin() + static_cast<ptrdiff_t>(at));
    } else {
      std::fill_n(labels_.begin() + static_cast<ptrdiff_t>(at), runs[run], kNotLearned);
    }
    at += runs[run];
  }
  assert(at == begin + ids.size());
  // By position, not by id: the end-of-text token that pads elsewhere is a real one here, and learned.
  std::fill(ids_.begin() + static_cast<ptrdiff_t>(at), ids_.end(), static_cast<int32_t>(layout_.pad_id));
  std::fill(labels_.begin() + static_cast<ptrdiff_t>(at), labels_.end(), kNotLearned);
  totals_.padding_tokens += padded - ids.size();
  if (layout_.padding != RowPadding::none) {
    mask_.resize(begin + ids.size(), 1);
    mask_.resize(begin + padded, 0);
  }
  offsets_.push_back(static_cast<int32_t>(ids_.size()));
  return offsets_.size() > kBatchRows || ids_.size() >= kBatchIds ? write_batch() : Status();
}

Status SplitWriter::write_batch() {
  if (offsets_.size() == 1) return {};
  std::vector<ArrowColumnData> columns = {{offsets_, std::as_bytes(std::span(ids_))},
                                          {offsets_, std::as_bytes(std::span(labels_))}};
  if (layout_.padding != RowPadding::none) columns.push_back({offsets_, std::as_bytes(std::span(mask_))});
  LMEMO_TRY(arrow_->batch(offsets_.size() - 1, columns));
  offsets_.assign(1, 0);
  ids_.clear(), labels_.clear(), mask_.clear();
  return {};
}

Status SplitWriter::spool_row(std::span<const uint32_t> ids, std::span<const uint32_t> runs) {
  const uint32_t lengths[] = {static_cast<uint32_t>(ids.size()), static_cast<uint32_t>(runs.size())};
  LMEMO_TRY(spool_->append(std::as_bytes(std::span(lengths))));
  LMEMO_TRY(spool_->append(std::as_bytes(ids)));
  return spool_->append(std::as_bytes(runs));
}

Status SplitWriter::write_spooled_rows() {
  const std::filesystem::path path = directory_ / kSpoolFile;
  LMEMO_TRY(spool_->finish(false));
  spool_.reset();
  LMEMO_TRY(start(totals_.longest));
  LMEMO_ASSIGN(const auto mapped, real_file_system().map(path));
  Bytes rest = mapped ? mapped->bytes() : Bytes();
  // We wrote it a moment ago, under a name that nobody else uses.
  const auto take = [&](size_t count) {
    const Bytes taken = rest.first(count * sizeof(uint32_t));
    rest = rest.subspan(taken.size());
    return std::span(reinterpret_cast<const uint32_t*>(taken.data()), count);
  };
  while (!rest.empty()) {
    const auto lengths = take(2);
    const auto ids = take(lengths[0]);
    const auto runs = take(lengths[1]);
    LMEMO_TRY(write_row(ids, runs));
  }
  return real_file_system().remove(path);
}

Result<SplitTotals> SplitWriter::finish(const std::string& name, const std::string& fingerprint) {
  if (spool_) LMEMO_TRY(write_spooled_rows());
  LMEMO_TRY(write_batch());
  LMEMO_TRY(arrow_->end());
  LMEMO_TRY(file_->finish(true));
  totals_.byte_count = file_->byte_count();
  totals_.checksum = file_->checksum();
  LMEMO_TRY(write_whole_file(directory_ / kStateFile, state_json(name, fingerprint)));
  LMEMO_TRY(write_whole_file(directory_ / kInfoFile, kInfoText));
  LMEMO_TRY(real_file_system().sync_directory(directory_));
  return totals_;
}

}  // namespace lmemo::dataset
