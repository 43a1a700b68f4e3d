// From an entry of the plan to the tokens of its documents.
#include <algorithm>

#include "base/sha256.h"
#include "faces/chunks/builder.h"
#include "faces/chunks/documents.h"
#include "faces/chunks/range_reader.h"

namespace lmemo::chunks {
namespace {

// Texts are handed to the tokenizer in batches of about this much.
constexpr size_t kBatchBytes = size_t{1} << 20;

uint64_t& counter_of(LineProblem problem, ChunkCounts& counts) {
  switch (problem) {
    case LineProblem::invalid_utf8:
    case LineProblem::lone_surrogate: return counts.invalid_utf8;
    case LineProblem::missing_field:
    case LineProblem::wrong_type: return counts.missing_field;
    default: return counts.broken;
  }
}

class Tokenising {
 public:
  Tokenising(const Plan& plan, const PlanEntry& entry, const Tokenizer& tokenizer, bool is_strict,
             ChunkSteps* steps)
      : plan_(plan),
        entry_(entry),
        tokenizer_(tokenizer),
        is_strict_(is_strict),
        steps_(steps),
        documents_(entry.documents()) {
    options_.add_special_tokens = false;  // bos and eos are the plan's.
    options_.truncation = TruncationOptions{};
    options_.padding = PaddingOptions{.length = 0};
  }

  Result<ChunkTokens> run(RangeReader& reader) {
    LMEMO_ASSIGN(field_, FieldPath::parse(plan_.parameters.text_field));
    // As many as there can hardly be: memory that is not touched costs nothing, copies while it grows would.
    made_.tokens.reserve(entry_.bytes());
    made_.offsets.reserve(documents_ + 1);
    std::string bytes;
    for (const PlanRange& range : entry_.ranges) {
      const PlanSource& source = plan_.sources.at(range.source);
      LMEMO_TRY(reader.read(source.path, range.begin, range.end, kRangePadding, bytes));
      const std::string_view view(bytes.data(), bytes.size() - kRangePadding);
      if (view.size() != range.end - range.begin || sha256(bytes_of(view)) != range.sha256)
        return Error{ErrorCode::invalid_argument,
                     source.path.string() + ", bytes " + std::to_string(range.begin) + " to " +
                         std::to_string(range.end) + ": not what was planned; run `lmemo chunks repair`"};
      const uint64_t before = document_;
      for_each_document(source.type, view, range.begin, range.first_line, parser_, field_,
                        [&](const Document& document) { add(source, document); });
      if (document_ - before != range.documents)
        return Error{ErrorCode::corruption, source.path.string() + ": " + std::to_string(document_ - before) +
                                                " documents, the plan says " +
                                                std::to_string(range.documents)};
      LMEMO_TRY(encode());
      LMEMO_TRY(strict_error_);
    }
    return std::move(made_);
  }

 private:
  void add(const PlanSource& source, const Document& document) {
    const uint64_t number = document_++;
    if (std::binary_search(entry_.duplicates.begin(), entry_.duplicates.end(), number)) {
      ++made_.left_out.duplicates;
      add_empty();
    } else if (!document.verdict.ok()) {
      ++counter_of(document.verdict.problem, made_.left_out);
      made_.problems.note(source.path.string(), document.line, document.verdict);
      if (is_strict_ && strict_error_.ok())
        strict_error_ =
            Error{ErrorCode::io_error,
                  made_.problems.named().empty() ? source.path.string() : made_.problems.named().back()};
      add_empty();
    } else if (document.text.empty()) {
      ++made_.left_out.empty;
      add_empty();
    } else {
      starts_.push_back(texts_.size());
      texts_ += document.text;
      if (texts_.size() >= kBatchBytes && status_.ok()) status_ = encode();
    }
  }

  // A document without tokens keeps its number.
  void add_empty() {
    if (status_.ok()) status_ = encode();
    made_.offsets.push_back(made_.tokens.size());
  }

  Status encode() {
    LMEMO_TRY(status_);
    if (starts_.empty()) return {};
    std::vector<std::string_view> views(starts_.size());
    for (size_t at = 0; at < starts_.size(); ++at)
      views[at] = std::string_view(texts_).substr(
          starts_[at], (at + 1 < starts_.size() ? starts_[at + 1] : texts_.size()) - starts_[at]);
    LMEMO_ASSIGN(const TokenBatch batch, tokenizer_.encode_batch(views, options_, 1));
    const ChunkParameters& parameters = plan_.parameters;
    for (size_t at = 0; at < batch.size(); ++at) {
      const std::span<const uint32_t> ids = batch[at];
      const size_t length = ids.size() + parameters.bos.has_value() + parameters.eos.has_value();
      if (length < parameters.min_tokens || ids.empty()) {
        ++(ids.empty() ? made_.left_out.empty : made_.left_out.too_short);
      } else {
        if (parameters.bos) made_.tokens.push_back(*parameters.bos);
        made_.tokens.insert(made_.tokens.end(), ids.begin(), ids.end());
        if (parameters.eos) made_.tokens.push_back(*parameters.eos);
      }
      made_.offsets.push_back(made_.tokens.size());
    }
    starts_.clear();
    texts_.clear();
    if (steps_ == nullptr) return {};
    return steps_->reach(BuildPhase::tokenise,
                         static_cast<double>(document_) / static_cast<double>(documents_));
  }

  const Plan& plan_;
  const PlanEntry& entry_;
  const Tokenizer& tokenizer_;
  const bool is_strict_;
  ChunkSteps* const steps_;  // Null if nobody wants to know.
  const uint64_t documents_;
  EncodeOptions options_;
  FieldPath field_;
  JsonLineParser parser_;
  ChunkTokens made_;
  uint64_t document_ = 0;
  std::string texts_;
  std::vector<size_t> starts_;
  Status status_, strict_error_;
};

}  // namespace

Result<ChunkTokens> tokens_of(const Plan& plan, const PlanEntry& entry, const Tokenizer& tokenizer,
                              bool is_strict, RangeReader& reader, ChunkSteps* steps) {
  return Tokenising(plan, entry, tokenizer, is_strict, steps).run(reader);
}

}  // namespace lmemo::chunks
