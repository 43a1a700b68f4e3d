#include "faces/dataset/set_builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/file_system.h"
#include "base/little_endian.h"
#include "base/sha256.h"
#include "faces/dataset/known_rows.h"
#include "faces/dataset/ordered_work.h"
#include "faces/dataset/row_maker.h"
#include "faces/dataset/set_directory.h"
#include "faces/dataset/split_writer.h"

namespace lmemo::dataset {
namespace {

constexpr size_t kBlockBytes = size_t{512} << 10;

struct FileBlock {
  size_t file = 0;
  LineBlock lines;
};

struct DoneBlock {
  size_t file = 0;
  uint64_t file_bytes = 0;  // How much of the file had been read.
  Result<RowBlock> rows;
};

class SetBuilder {
 public:
  SetBuilder(SetPlan& plan, const std::filesystem::path& directory, Store* store, SeenFiles& seen,
             const Watch& watch)
      : plan_(plan),
        options_(*plan.options),
        directory_(directory),
        store_(store),
        seen_(seen),
        watch_(watch),
        putter_(store, plan.recipe.key_fields()) {}

  Result<DatasetCounts> build() {
    LMEMO_TRY(open_splits());
    if (store_ != nullptr) known_.load(*store_, plan_.recipe.key_fields());
    if (plan_.recipe.template_kind == RowTemplate::rendered) LMEMO_TRY(make_renderer());
    for (const InputFile& file : plan_.files)
      if (const auto stamp = look_at(file.path)) total_bytes_ += stamp->byte_count;
    const Status read = read_files();
    putter_.flush();  // What was computed is kept, even if the rest failed.
    LMEMO_TRY(read);
    LMEMO_TRY(check_counts());
    LMEMO_TRY(finish());
    return counts_;
  }

 private:
  Status open_splits() {
    const std::filesystem::path folder = directory_ / kDatasetFolder;
    LMEMO_TRY(real_file_system().make_directory(folder));
    const RowLayout layout{options_.padding, options_.max_length, plan_.facts.pad_id.value_or(0)};
    LMEMO_ASSIGN(train_, SplitWriter::create(folder / "train", layout));
    if (has_eval()) {
      LMEMO_ASSIGN(eval_, SplitWriter::create(folder / "eval", layout));
    }
    return {};
  }

  bool has_eval() const { return options_.eval_split > 0 || !options_.eval_files.empty(); }

  Status make_renderer() {
    if (!options_.make_renderer)
      return Error{ErrorCode::incompatible,
                   "this template is Jinja, which needs Python: pip install 'lmemo[hf]' and run its `lmemo`; "
                   "or choose "
                   "--template chatml"};
    LMEMO_ASSIGN(RenderChats render, options_.make_renderer(options_.tokenizer, plan_.recipe.template_text,
                                                            plan_.recipe.loss != RowLoss::all));
    render_ = [this, render = std::move(render)](std::span<const std::string> chats) {
      const std::lock_guard lock(render_mutex_);
      return render(chats);
    };
    return {};
  }

  Status read_files() {
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    OrderedWork<FileBlock, DoneBlock> work(options_.workers == 0 ? cores : options_.workers, [this] {
      auto maker = std::make_shared<RowMaker>(plan_.recipe, *plan_.tokenizer, known_, render_);
      return [this, maker](FileBlock block) -> DoneBlock {
        const std::string name = plan_.files[block.file].path.string();
        return {block.file, block.lines.offset + block.lines.byte_count, maker->make(block.lines, name)};
      };
    });
    for (size_t file = 0; file < plan_.files.size(); ++file) LMEMO_TRY(read_file(file, work));
    while (std::optional<DoneBlock> done = work.take()) LMEMO_TRY(write(std::move(*done)));
    return {};
  }

  Status read_file(size_t file, OrderedWork<FileBlock, DoneBlock>& work) {
    InputFile& input = plan_.files[file];
    const std::optional<FileStamp> before = look_at(input.path);
    LineBlockReader::Options reader_options;
    reader_options.block_bytes = kBlockBytes;
    reader_options.hashes_file = true;
    LMEMO_ASSIGN(const auto reader, LineBlockReader::open(input.path, reader_options));
    while (true) {
      if (watch_.stopped())
        return Error{ErrorCode::interrupted, "while building; what was tokenised is kept"};
      watch_.report({"tokenise", done_bytes_ + reader->file_bytes_read(), total_bytes_, "bytes"});
      LMEMO_ASSIGN(std::optional<LineBlock> block, reader->next());
      if (!block) break;
      work.give({file, std::move(*block)});
      while (work.under_way() > work.limit()) LMEMO_TRY(write(std::move(*work.take())));
    }
    done_bytes_ += reader->file_bytes_read();
    input.identity = {reader->file_bytes_read(), reader->file_digest()};
    if (before) seen_.note(input.path, *before, input.identity);
    return {};
  }

  Status write(DoneBlock done) {
    if (!done.rows.ok()) return done.rows.error();
    const RowBlock& block = *done.rows;
    counts_.lines += block.lines;
    counts_.tokenise_seconds += block.tokenise_seconds;
    problems_.add(block.problems);
    if (hint_.empty()) hint_ = block.missing_field_hint;
    const InputFile& file = plan_.files[done.file];
    const uint32_t* ids = block.ids.data();
    const uint32_t* runs = block.runs.data();
    for (const MadeRow& row : block.rows) {
      const std::span row_ids(ids, row.id_count), row_runs(runs, row.run_count);
      ids += row.id_count;
      runs += row.run_count;
      (row.is_new ? counts_.rows_tokenised : counts_.rows_from_store) += 1;
      if (row.is_new) counts_.tokens_tokenised += row.id_count;
      if (row.is_new) putter_.add(row.digest, row_ids, row_runs);
      const bool to_eval = file.is_eval || (options_.eval_split > 0 &&
                                            goes_to_eval(row.digest, options_.seed, options_.eval_split));
      LMEMO_TRY(place(to_eval ? *eval_ : *train_, row_ids, row_runs, file, row.line));
    }
    return {};
  }

  // Cut to max_length as the options want it.
  Status place(SplitWriter& split, std::span<const uint32_t> ids, std::span<const uint32_t> runs,
               const InputFile& file, uint64_t line) {
    if (ids.size() <= options_.max_length) return place_piece(split, ids, runs, file, line);
    switch (options_.overflow) {
      case RowOverflow::error:
        return Error{ErrorCode::incompatible,
                     file.path.string() + ':' + std::to_string(line) + ": a row of " +
                         std::to_string(ids.size()) + " ids, longer than max_length " +
                         std::to_string(options_.max_length) + "; choose --overflow truncate, drop or split"};
      case RowOverflow::drop: counts_.dropped_rows += 1; return {};
      case RowOverflow::truncate:
        counts_.truncated_rows += 1;
        counts_.truncated_tokens += ids.size() - options_.max_length;
        return place_part(split, ids, runs, 0, options_.max_length, file, line);
      case RowOverflow::split:
        counts_.split_rows += 1;
        for (size_t at = 0; at < ids.size(); at += options_.max_length)
          LMEMO_TRY(place_part(split, ids, runs, at, std::min<size_t>(options_.max_length, ids.size() - at),
                               file, line));
        return {};
    }
    return {};
  }

  Status place_part(SplitWriter& split, std::span<const uint32_t> ids, std::span<const uint32_t> runs,
                    size_t begin, size_t count, const InputFile& file, uint64_t line) {
    part_runs_.clear();
    size_t at = 0;
    for (const uint32_t run : runs) {
      const size_t from = std::clamp(at, begin, begin + count);
      const size_t to = std::clamp(at + run, begin, begin + count);
      part_runs_.push_back(static_cast<uint32_t>(to - from));
      at += run;
    }
    return place_piece(split, ids.subspan(begin, count), part_runs_, file, line);
  }

  Status place_piece(SplitWriter& split, std::span<const uint32_t> ids, std::span<const uint32_t> runs,
                     const InputFile& file, uint64_t line) {
    // A batch of such rows would have no loss at all: NaN.
    bool has_learned = false;
    for (size_t run = 1; run < runs.size(); run += 2) has_learned = has_learned || runs[run] > 0;
    if (!has_learned) {
      problems_.note(file.path.string(), line, "nothing to learn: what is learned lies beyond max_length");
      return {};
    }
    return split.add(ids, runs);
  }

  Status check_counts() {
    counts_.bad_lines = problems_.total();
    counts_.problems = problems_.counts();
    counts_.first_problems = problems_.named();
    std::string named;
    for (const std::string& name : counts_.first_problems) named += "\n  " + name;
    if (options_.is_strict && counts_.bad_lines > 0)
      return Error{ErrorCode::incompatible,
                   std::to_string(counts_.bad_lines) + " bad lines, and --strict allows none:" + named};
    if (counts_.rows_tokenised + counts_.rows_from_store == 0) {
      std::string message = "no line became a row (" + std::to_string(counts_.lines) +
                            (counts_.lines == 1 ? " line in " : " lines in ") +
                            options_.train_files.front().string() +
                            (options_.train_files.size() > 1 ? " and others)" : ")") + named;
      if (!hint_.empty())
        message += "\nthe lines have: " + hint_ +
                   "; --text-field, --messages-field or --prompt-field and --completion-field name them";
      return Error{ErrorCode::incompatible, message};
    }
    return {};
  }

  Status finish() {
    const IdentityFields identity = identity_fields(options_, plan_.facts, plan_.recipe, plan_.files);
    std::vector<std::pair<std::string, SplitTotals>> splits;
    LMEMO_ASSIGN(const SplitTotals train, train_->finish("train", fingerprint_of(identity, "train")));
    splits.emplace_back("train", train);
    SplitTotals eval;
    if (has_eval()) {
      LMEMO_ASSIGN(eval, eval_->finish("eval", fingerprint_of(identity, "eval")));
      splits.emplace_back("eval", eval);
    }
    counts_.train_rows = train.rows;
    counts_.eval_rows = eval.rows;
    counts_.train_tokens = train.tokens;
    counts_.eval_tokens = eval.tokens;
    counts_.learned_tokens = train.learned_tokens + eval.learned_tokens;
    counts_.padding_tokens = train.padding_tokens + eval.padding_tokens;
    LMEMO_TRY(
        write_whole_file(directory_ / kDatasetFolder / "dataset_dict.json", dataset_dict_json(has_eval())));
    LMEMO_TRY(real_file_system().sync_directory(directory_ / kDatasetFolder));
    LMEMO_TRY(copy_tokenizer());
    return write_whole_file(directory_ / kMetadataFile,
                            metadata_json(options_, plan_.facts, plan_.files, identity, counts_, splits));
  }

  // So that whoever has the set can decode it, and load the tokenizer with transformers.
  Status copy_tokenizer() const {
    namespace fs = std::filesystem;
    const fs::path to = directory_ / kTokenizerFolder;
    LMEMO_TRY(real_file_system().make_directory(to));
    std::error_code error;
    if (!fs::is_directory(options_.tokenizer, error)) {
      fs::copy_file(options_.tokenizer, to / "tokenizer.json", error);
      if (error) return errno_error(error.value(), "copy", options_.tokenizer);
      return {};
    }
    static constexpr const char* kNames[] = {"tokenizer.json",
                                             "tokenizer_config.json",
                                             "special_tokens_map.json",
                                             "added_tokens.json",
                                             "chat_template.jinja",
                                             "vocab.json",
                                             "merges.txt",
                                             "vocab.txt",
                                             "tokenizer.model",
                                             "spiece.model",
                                             "sentencepiece.bpe.model"};
    for (const char* name : kNames) {
      if (!fs::exists(options_.tokenizer / name, error)) continue;
      fs::copy_file(options_.tokenizer / name, to / name, error);
      if (error) return errno_error(error.value(), "copy", options_.tokenizer / name);
    }
    const fs::path more = options_.tokenizer / "additional_chat_templates";
    if (fs::is_directory(more, error)) {
      fs::copy(more, to / "additional_chat_templates", fs::copy_options::recursive, error);
      if (error) return errno_error(error.value(), "copy", more);
    }
    return {};
  }

  SetPlan& plan_;
  const DatasetOptions& options_;
  const std::filesystem::path directory_;
  Store* const store_;
  SeenFiles& seen_;
  const Watch& watch_;
  std::unique_ptr<SplitWriter> train_, eval_;
  KnownRows known_;
  RowPutter putter_;
  std::mutex render_mutex_;  // Guards the renderer.
  RenderChats render_;
  DatasetCounts counts_;
  LineProblems problems_;
  std::string hint_;
  LearnedRuns part_runs_;
  uint64_t done_bytes_ = 0;
  uint64_t total_bytes_ = 0;
};

}  // namespace

bool goes_to_eval(const Digest& row, int64_t seed, double share) {
  std::string bytes;
  append_le(bytes, seed);
  bytes += text_of(row.bytes);
  const uint64_t place = load_le<uint64_t>(sha256(bytes_of(bytes)).bytes.data());
  return std::ldexp(static_cast<double>(place >> 11), -53) < share;
}

Result<DatasetCounts> build_set(SetPlan& plan, const std::filesystem::path& directory, Store* store,
                                SeenFiles& seen, const Watch& watch) {
  return SetBuilder(plan, directory, store, seen, watch).build();
}

}  // namespace lmemo::dataset
